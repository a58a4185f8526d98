"""Blocks that make one operation for each item of a source, with a bounded number of operations at the same time."""
