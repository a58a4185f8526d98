"""Scopes and collections of a bucket."""
