"""Laws of operations, rows and lookups, in addition to the neutral ones."""
