"""Retries of any async function."""
