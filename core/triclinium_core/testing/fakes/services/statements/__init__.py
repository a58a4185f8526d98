"""The query and the analytics service: statements, prepared ones, and indexes for them."""
