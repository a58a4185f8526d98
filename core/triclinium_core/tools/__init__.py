"""Tools that are not part of the client: a simulated fleet, and decisions as JSON."""
