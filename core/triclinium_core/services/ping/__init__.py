"""Whether an endpoint answers at all: the pings of users, and the canaries of circuit breakers."""
