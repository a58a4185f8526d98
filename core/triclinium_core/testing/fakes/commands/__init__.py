"""Commands of the fake nodes: each reads a request and returns the reply. Similar commands share a module."""
