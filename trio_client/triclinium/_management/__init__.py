"""Managers of the buckets, collections, users and indexes of a cluster."""
