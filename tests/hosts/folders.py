"""Folders of the hosts."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Root of the sources."""

HOSTS = ROOT / "core" / "hosts"
"""Folder of the hosts."""
