"""The scopes and collections of a bucket."""
