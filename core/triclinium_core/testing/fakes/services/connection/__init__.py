"""One connection of one client: HTTP, authentication, and delivery of answers with their faults."""
