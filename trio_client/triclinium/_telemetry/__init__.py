"""Spans and durations of calls for the user's tracer and meter; names and attributes are in the core."""
