"""Planted defects, one patch each, and the command that judges whether the tests notice: ``python -m tests.mutants``."""
