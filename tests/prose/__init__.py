"""English of the project: its sentences, a sieve for phrases to rewrite, and a random sample for readers."""
