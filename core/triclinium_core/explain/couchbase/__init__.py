"""Explanation of the retry machine's decision on one failure of a Couchbase request."""
