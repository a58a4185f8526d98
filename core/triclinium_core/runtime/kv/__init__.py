"""Runtime of the key-value service: connections, routes, and operations that wait for them."""
