"""The analytics service: options, request and result.

Each module is loaded on its first use as an attribute of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_modules

__all__ = ["analytics_request", "result"]

if TYPE_CHECKING:
    from triclinium_core.services.analytics import analytics_request, result
else:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_modules(globals(), __all__)
