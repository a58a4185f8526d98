"""Conversion between bytes and frames of Couchbase's variant of the memcached binary protocol."""
