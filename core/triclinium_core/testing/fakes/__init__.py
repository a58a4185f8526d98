"""Fake nodes: a cluster without a network, and faults on demand."""
