"""Management of a cluster: its buckets, scopes, collections, users, groups and indexes (SDK-RFC 0054)."""
