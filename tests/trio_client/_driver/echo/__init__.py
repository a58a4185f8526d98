"""Toy protocol for the protocol-neutral half of the driver: lines that the server sends back, each with a deadline."""
