"""Tapes of a client: options, files and their writers."""
