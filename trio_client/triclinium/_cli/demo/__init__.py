"""``triclinium demo``: failures on a fake node, and a check of the client's decisions against the RFC."""
