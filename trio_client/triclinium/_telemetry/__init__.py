"""Reports of each call to the user's tracer and meter; names and attributes are in the core."""
