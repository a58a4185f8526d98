"""Management of a cluster: its buckets, collections, users and indexes (SDK-RFC 0054)."""
