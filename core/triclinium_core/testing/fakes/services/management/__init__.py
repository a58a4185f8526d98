"""Cluster manager: configs, buckets, scopes and collections, users and groups."""
