"""The version; the build reads it here. All three packages have the same one."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
