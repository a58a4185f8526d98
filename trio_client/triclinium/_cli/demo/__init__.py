"""``triclinium demo``: failures played on a fake node, and whether the client does what the RFC demands."""
