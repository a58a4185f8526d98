"""Tools that are no part of the client: a simulated fleet, and vectors of decisions."""
