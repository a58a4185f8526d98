"""Reports of decoder faults for the log, at most one for each kind of fault."""

from __future__ import annotations

from collections.abc import Callable

from triclinium_core.contract.couchbase.actions import Action
from triclinium_core.contract.neutral import ReportDecoderFault, StreamId
from triclinium_core.decoder_faults import Decoder, DecoderFault

KINDS_MAX = 64
"""Maximum number of kinds of faults that the client reports and remembers. It is several times the number of decoders,
so further kinds would add no information."""


class FaultReports:
    """Kinds of faults that the client has reported.

    Each kind is reported at most once, because a node may send the same bytes at any rate, and each report has a
    traceback.
    """

    def __init__(self, *, emit: Callable[[Action], None]) -> None:
        self._emit = emit
        self._reported: set[tuple[Decoder, str]] = set()

    def report(self, stream: StreamId, node: str, fault: DecoderFault) -> None:
        """Order a report about ``fault``, unless its kind or ``KINDS_MAX`` kinds were reported before."""
        if fault.kind not in self._reported and len(self._reported) < KINDS_MAX:
            self._reported.add(fault.kind)
            self._emit(ReportDecoderFault(stream, node, fault))
