"""``triclinium explain``: the reasons of a decision on a retry; one module for each tradition."""
