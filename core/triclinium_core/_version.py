"""Version of all three packages. The build reads it from this module."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
