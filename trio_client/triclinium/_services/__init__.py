"""Public API of the HTTP services: statements, searches and views, and their rows."""
