"""Conversion of Python values to document bytes with flags, and back."""
