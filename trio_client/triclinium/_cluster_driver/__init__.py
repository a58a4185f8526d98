"""Couchbase half of the driver: operations, rows, name look-ups and reports, on top of ``_driver``."""
