"""Exact recording of a client machine: each event, each answer of user code, and the digest of the actions."""
