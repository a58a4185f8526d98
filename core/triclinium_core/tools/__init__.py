"""Tools that are not part of the client: a simulation of a fleet, and retry decisions as JSON."""
