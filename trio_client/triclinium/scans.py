"""Types and results of scans; ``Collection.scan`` runs them."""

from __future__ import annotations

from triclinium._collection.scans import ScanResults
from triclinium_core.kv.operation.results import ScanResult
from triclinium_core.kv.operation.scan.scans import PrefixScan, RangeScan, SamplingScan, ScanTerm, ScanType

__all__ = [
    "PrefixScan",
    "RangeScan",
    "SamplingScan",
    "ScanResult",
    "ScanResults",
    "ScanTerm",
    "ScanType",
]
