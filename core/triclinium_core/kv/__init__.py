"""Couchbase key-value: the whole client as one pure machine."""
