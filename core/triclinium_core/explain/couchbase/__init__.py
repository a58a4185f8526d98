"""Why a request to a Couchbase cluster is retried: one event, fed to the retry machine that the client runs."""
