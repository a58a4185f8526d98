"""Full-text and vector search: queries as values, the request that carries them, and what it finds."""
