"""The key-value service at work: connections, routes, and what waits on them."""
