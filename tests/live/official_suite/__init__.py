"""Test files of the official Python client, run against ``triclinium serve``."""
