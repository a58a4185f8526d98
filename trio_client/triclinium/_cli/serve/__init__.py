"""``triclinium serve``: fake nodes, with faults, and a log of what they are asked."""
