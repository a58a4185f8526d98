"""Contract between machines and their drivers: a neutral part, and the part of the Couchbase client."""
