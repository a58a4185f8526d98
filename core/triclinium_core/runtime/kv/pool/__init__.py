"""Key-value connections of a client: their addresses, their opening, their periodic checks and their loss."""
