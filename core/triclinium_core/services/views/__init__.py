"""Views: options, request and result."""
