"""Location of documents: connection strings, cluster configs, vbuckets and collections."""
