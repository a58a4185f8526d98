"""``triclinium ping``: the nodes of a cluster, and the features they negotiate."""
