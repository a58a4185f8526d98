"""Tapes of a client: options, files, and what writes them."""
