"""Bytes against the client: whatever a peer sends, only documented errors come out."""
