"""The fake nodes: a cluster without a network, and what goes wrong in it on demand."""
