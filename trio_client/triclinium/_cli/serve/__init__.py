"""``triclinium serve``: fake nodes with faults, and a log of the requests to them."""
