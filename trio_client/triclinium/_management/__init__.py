"""Managers of the buckets, collections, users and indexes of a cluster.

The modules in ``__all__`` are loaded on their first use as attributes of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_modules

__all__ = ["buckets", "collections", "query_indexes", "search_indexes", "users"]

if TYPE_CHECKING:
    from triclinium._management import buckets, collections, query_indexes, search_indexes, users
else:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_modules(globals(), __all__)
