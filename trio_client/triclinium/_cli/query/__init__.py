"""``triclinium query``: the rows of a statement, as they arrive."""
