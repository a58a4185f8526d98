"""Retries inside third-party packages on trio. Each adapter needs the extra of its name."""
