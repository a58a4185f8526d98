"""Fuzzing of the client with arbitrary bytes, for which it must raise only documented errors."""
