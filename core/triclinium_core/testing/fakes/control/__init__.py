"""Commands that control the nodes of a fake cluster during a run: one table, and its readers."""
