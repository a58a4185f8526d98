"""Reports of decoder faults, one per kind."""

from __future__ import annotations

from collections.abc import Callable

from triclinium_core.contract.couchbase.actions import Action
from triclinium_core.contract.neutral import ReportDecoderFault, StreamId
from triclinium_core.decoder_faults import Decoder, DecoderFault

KINDS_MAX = 64
"""Maximum number of kinds that are reported and remembered. There are a dozen decoders; further kinds add nothing."""


class FaultReports:
    """Kinds of faults that were reported. A node may repeat its bytes at any rate, and each report has a traceback."""

    def __init__(self, *, emit: Callable[[Action], None]) -> None:
        self._emit = emit
        self._reported: set[tuple[Decoder, str]] = set()

    def report(self, stream: StreamId, node: str, fault: DecoderFault) -> None:
        """Order a report of ``fault``, unless its kind was reported before."""
        if fault.kind not in self._reported and len(self._reported) < KINDS_MAX:
            self._reported.add(fault.kind)
            self._emit(ReportDecoderFault(stream, node, fault))
