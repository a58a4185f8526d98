"""State machines of the key-value service: connections, routes, and the operations that wait for a connection."""
