"""The commands of ``triclinium``: a module each, or a folder where one is not enough; ``group`` finds them."""

from __future__ import annotations

from triclinium._cli.group import main

__all__ = ["main"]
