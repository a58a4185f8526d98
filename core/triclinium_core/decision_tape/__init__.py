"""Decision tape: operations with their retry decisions, and events of connections, circuit breakers and the cluster."""
