"""State machines of the HTTP services: endpoints, their connections, and requests."""
