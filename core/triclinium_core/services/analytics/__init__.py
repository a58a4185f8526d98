"""The analytics service: options, request and result."""
