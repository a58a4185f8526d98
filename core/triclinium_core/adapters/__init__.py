"""Policies and strategies as plug-ins of other projects' packages; each needs the extra of its name."""
