"""Toy protocol for the protocol-neutral half of the driver: a server sends each line back."""
