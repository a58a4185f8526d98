"""``triclinium explain``: why a request would be retried, or not; one module for each tradition."""
