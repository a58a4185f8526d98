"""Fake nodes, alone or as a cluster: the place of faults, replies and the command log."""
