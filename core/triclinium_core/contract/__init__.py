"""Events and actions that machines and their drivers exchange: for any protocol, and for the Couchbase client only."""
