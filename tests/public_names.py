"""Public objects of the client, which other tests check one by one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import triclinium

MODULES = (triclinium, *(import_module(f"triclinium.{name}") for name in triclinium._MODULES))
"""Package and its modules for applications."""

PUBLIC: dict[str, Any] = {
    name: getattr(module, name) for module in MODULES for name in module.__all__ if name not in triclinium._MODULES
}
"""Objects of these modules by name."""
