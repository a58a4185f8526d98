"""The query service: options, requests for statements and plans, and result."""
