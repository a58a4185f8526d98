"""Events and actions that machines and drivers exchange: for any protocol, or only for the Couchbase client."""
