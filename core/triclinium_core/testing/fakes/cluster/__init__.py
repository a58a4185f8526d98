"""Fake nodes, alone or as a cluster, with their faults, replies and command logs."""
