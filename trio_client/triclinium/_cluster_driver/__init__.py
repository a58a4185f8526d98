"""The Couchbase half of the driver: operations, rows, look-ups and reports, on top of ``_driver``."""
