"""Where documents live: connection strings, cluster configs, vbuckets, collections."""
