"""The client at work, on both services: what is open, where it was sent, and over which connections."""
