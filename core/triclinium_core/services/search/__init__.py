"""Full-text and vector search: queries as values, the request that contains them, and its result."""
