"""The commands of ``triclinium``, one file each."""

from __future__ import annotations

from triclinium._cli.group import main

__all__ = ["main"]
