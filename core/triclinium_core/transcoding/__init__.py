"""Conversion between Python values and the bytes and flags of documents."""
