"""Execution profiles: named options, read from a mapping or TOML and checked before a policy is created."""
