"""Views: options, request and result.

The modules ``result`` and ``view_request`` are loaded on their first use as attributes of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_modules

__all__ = ["result", "view_request"]

if TYPE_CHECKING:
    from triclinium_core.services.views import result, view_request
else:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_modules(globals(), __all__)
