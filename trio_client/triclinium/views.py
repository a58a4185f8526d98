"""Options and results of view queries; ``Bucket.view_query`` runs them."""

from __future__ import annotations

from triclinium._services.results import ViewResult
from triclinium_core.services.views.options import (
    DesignDocumentNamespace,
    ViewErrorMode,
    ViewOrdering,
    ViewScanConsistency,
)
from triclinium_core.services.views.result import ViewError, ViewMetaData, ViewRow

__all__ = [
    "DesignDocumentNamespace",
    "ViewError",
    "ViewErrorMode",
    "ViewMetaData",
    "ViewOrdering",
    "ViewResult",
    "ViewRow",
    "ViewScanConsistency",
]
