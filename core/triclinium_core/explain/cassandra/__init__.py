"""Explanation of the request machine's decision on one error of a Cassandra request."""
