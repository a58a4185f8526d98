"""Views: the request for the rows of one, and what it answers."""
