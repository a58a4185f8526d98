"""Runtime of the key-value service and of the HTTP services: life cycle, dispatch, connections."""
