"""Commands of ``triclinium``, each in a module or a folder; ``group`` finds them."""

from __future__ import annotations

from triclinium._cli.group import main

__all__ = ["main"]
