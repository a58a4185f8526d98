"""Adapters of policies and strategies for packages of other projects. Each requires the extra with its name."""
