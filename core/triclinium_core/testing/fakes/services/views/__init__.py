"""The views, and the design documents that they keep."""
