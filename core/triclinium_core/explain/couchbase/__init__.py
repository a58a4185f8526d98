"""Explanation of the decision on one failure of a Couchbase request, made by the client's retry machine."""
