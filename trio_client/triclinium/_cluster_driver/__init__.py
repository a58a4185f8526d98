"""Couchbase half of the driver: operations, rows, name lookups and reports, on top of ``_driver``."""
