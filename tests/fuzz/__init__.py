"""Arbitrary bytes against the client, which must raise only documented errors."""
