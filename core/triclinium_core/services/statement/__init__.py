"""Common parts of query and analytics: statements, parameters, identifiers, durations and responses."""
