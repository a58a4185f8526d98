"""Policies and strategies as plug-ins for packages of other projects; each requires the extra of its name."""
