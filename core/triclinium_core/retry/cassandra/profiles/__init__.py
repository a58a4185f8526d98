"""Execution profiles: named sets of policies and options, which a program may read from a mapping or from TOML."""
