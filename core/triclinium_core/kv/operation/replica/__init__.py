"""Copies of a document besides the active one."""
