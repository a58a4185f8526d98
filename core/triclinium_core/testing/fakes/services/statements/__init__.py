"""Query and analytics services: statements, prepared statements, and query indexes."""
