"""Version of the package, read by the build. All three packages have the same version."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
