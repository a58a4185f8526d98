"""The cluster manager: configs, buckets, scopes and collections, users and groups."""
