"""Values and codecs of the HTTP services: query, analytics, search, views and management."""
