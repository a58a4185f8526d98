"""Commands of the fake nodes: bytes of a request in, bytes of its reply out, one module for each family."""
