"""Retries inside other people's packages that run on trio; each needs the extra of its name."""
