"""Reads of replicas of a document."""
