"""Explanation of the decision on one error of a Cassandra request, made by a function of the request machine."""
