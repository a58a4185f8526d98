"""Public API of the HTTP services: statements, searches and views, and their rows.

The module ``results`` is loaded on its first use as an attribute of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_modules

__all__ = ["results"]

if TYPE_CHECKING:
    from triclinium._services import results
else:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_modules(globals(), __all__)
