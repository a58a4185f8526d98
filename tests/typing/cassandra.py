"""Types of execution profile documents. Checked, never run."""

from __future__ import annotations

from datetime import timedelta

from triclinium_core.retry.cassandra import ExecutionProfiles


def documents() -> None:
    """Pass triclinium's names or the driver's; a misspelt name or a wrong type is an error."""
    ExecutionProfiles.from_mapping({"request_timeout": "30 seconds", "profiles": {"slow": {"request_timeout": 30.0}}})
    ExecutionProfiles.from_mapping({"request_timeout": timedelta(seconds=30)})
    ExecutionProfiles.from_mapping({"request": {"timeout": "30 seconds"}, "basic": {"request": {"consistency": "ONE"}}})
    ExecutionProfiles.from_mapping({"profiles": {"slow": {"advanced": {"retry-policy": {"class": "default"}}}}})
    ExecutionProfiles.from_mapping({"datastax-java-driver": {"profiles": {}}})
    ExecutionProfiles.from_mapping({"request_timout": 30.0})  # type: ignore[typeddict-unknown-key]
    ExecutionProfiles.from_mapping({"request_timeout": []})  # type: ignore[typeddict-item]
