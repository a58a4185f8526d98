"""Neutral half of the driver: it feeds any machine and executes the actions that every machine may return."""
