"""One connection of one client: HTTP, authentication, and delivery of responses with their faults."""
