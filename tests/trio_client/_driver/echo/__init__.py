"""Toy protocol for the protocol-neutral half of the driver: the server sends each line back before its deadline."""
