"""A collection's operations, by family."""
