"""User interface of the HTTP services: statements, searches and views, and their rows."""
