"""What a user may ask of the key-value service, and the life of one such operation."""
