"""Pings, waits, diagnostics and statistics of a cluster."""
