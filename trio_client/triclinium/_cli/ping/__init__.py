"""``triclinium ping``: what each node is, and what it negotiates."""
