"""Command ``triclinium replay``."""
