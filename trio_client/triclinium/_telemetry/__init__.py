"""What a user's tracer and meter are told of each call; what is told, and under which names, the core says."""
