"""Adapters of policies and strategies for other packages. Each requires the extra named after its package."""
