"""Location of nodes and documents: connection strings, cluster configs, networks and vbuckets."""
