"""One connection to one node: bootstrap, authentication, and the requests that have no answer yet."""
