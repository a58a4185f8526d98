"""Full-text and vector search: queries as values, the request that contains them, and its result.

Each module is loaded on its first use as an attribute of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_modules

__all__ = ["facets", "parts", "queries", "result", "search_request", "sorting", "vectors"]

if TYPE_CHECKING:
    from triclinium_core.services.search import facets, parts, queries, result, search_request, sorting, vectors
else:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_modules(globals(), __all__)
