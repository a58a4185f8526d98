"""Execution profiles: options by name, read from a mapping or from TOML and checked before anything is made."""
