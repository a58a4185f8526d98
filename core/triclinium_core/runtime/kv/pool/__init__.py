"""Key-value connections of a client: their addresses, opening, checks and loss."""
