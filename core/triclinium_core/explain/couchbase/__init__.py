"""Explanations for a Couchbase request: one event, fed to the retry machine of the client."""
