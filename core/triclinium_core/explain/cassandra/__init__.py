"""Explanations for a Cassandra request: one error, judged by the function of the request machine."""
