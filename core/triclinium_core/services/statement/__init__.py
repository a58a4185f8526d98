"""Common parts of query and analytics: a SQL++ statement, its parameters, and times in JSON."""
