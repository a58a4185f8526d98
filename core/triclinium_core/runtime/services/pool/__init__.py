"""All connections to the services: where each service is reached, and which connection is free."""
