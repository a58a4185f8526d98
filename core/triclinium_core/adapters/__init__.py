"""Adapters of policies and strategies for packages of other projects. Each requires the extra named for its package."""
