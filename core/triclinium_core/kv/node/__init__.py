"""One connection to one node: bootstrap, authentication, requests in flight."""
