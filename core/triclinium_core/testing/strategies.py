"""Hypothesis strategies for histories of a key-value client: operations, faults, retry strategies, cuts.

Needs the extra ``testing``. What is drawn is small values that read well in a failing example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from triclinium_core.kv.operation.requests import (
    OPERATIONS,
    Concatenate,
    Count,
    DocumentOperation,
    Get,
    GetAndLock,
    GetAndTouch,
    GetReplica,
    Operation,
    Remove,
    Replace,
    Store,
    Touch,
    Unlock,
    Upsert,
)
from triclinium_core.kv.operation.results import Cas
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.strategy import (
    AnyRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FailFastRetryStrategy,
    RetryAction,
)
from triclinium_core.testing.faults import (
    DATA_OPCODES,
    Fault,
    Faults,
    delay,
    drop_response,
    garble,
    hang_up,
    hang_up_after_applying,
    hang_up_mid_reply,
    locked,
    not_my_vbucket,
    refuse_connection,
    status,
    temporary_failure,
    wrong_length,
)
from triclinium_core.testing.model import Model
from triclinium_core.testing.submissions import Place
from triclinium_core.testing.troubles import HARMLESS_STATUSES, INVALIDATING_STATUSES
from triclinium_core.transcoding.flags import BINARY_FLAGS

_KINDS: Mapping[str, type[Operation]] = {
    kind.name: kind for kind in OPERATIONS if issubclass(kind, DocumentOperation) and not issubclass(kind, GetReplica)
}
"""What is drawn. A replica may be behind, so the model could not judge who reads it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """An operation but for what only the history tells: its mark, and a CAS that was returned earlier."""

    kind: str
    place: Place
    cas: int | None = None
    """Which of the CAS values known, counted from the newest; None for none."""
    expiry: int = 0
    lock_time: int = 1
    flag: bool = False
    """Whether a write preserves the expiry, or a count creates the document."""

    def make(self, model: Model) -> DocumentOperation:
        """Return the operation; a get where there is no CAS to unlock with, or no mark to count with."""
        known = model.known_cas(self.place)
        cas = known[-1 - self.cas % len(known)] if known and self.cas is not None else Cas(0)
        kind = _KINDS[self.kind]
        if (kind is Unlock and not cas) or (issubclass(kind, Count) and not model.marks.has_counters):
            kind = Get
        return self._make(kind, model, cas)

    def _make(self, kind: type[Operation], model: Model, cas: Cas) -> DocumentOperation:
        place, expiry = self.place, self.expiry
        if issubclass(kind, Store):
            value = model.marks.fragment()
            if issubclass(kind, Replace):
                return kind(*place, value, BINARY_FLAGS, expiry, self.flag, cas)
            if issubclass(kind, Upsert):
                return kind(*place, value, BINARY_FLAGS, expiry, self.flag)
            return kind(*place, value, BINARY_FLAGS, expiry)
        if issubclass(kind, Concatenate):
            return kind(*place, model.marks.fragment(), cas)
        if issubclass(kind, Count):
            delta, initial = model.marks.counter()
            return kind(*place, delta, initial if self.flag else None, expiry)
        if issubclass(kind, Touch | GetAndTouch):
            return kind(*place, expiry)
        if issubclass(kind, GetAndLock):
            return kind(*place, self.lock_time)
        if issubclass(kind, Remove | Unlock):
            return kind(*place, cas)
        assert issubclass(kind, DocumentOperation)
        return kind(*place)


_CAS = st.sampled_from((None, 0, 0, 1))
_EXPIRY = st.sampled_from((0, 0, 1, 3, 3600))

_PARAMETERS: Mapping[type[Operation], Mapping[str, st.SearchStrategy[object]]] = {
    Store: {"expiry": _EXPIRY},
    Upsert: {"flag": st.booleans()},
    Replace: {"flag": st.booleans(), "cas": _CAS},
    Concatenate: {"cas": _CAS},
    Remove: {"cas": _CAS},
    Unlock: {"cas": st.just(0)},
    Count: {"flag": st.booleans(), "expiry": _EXPIRY},
    Touch: {"expiry": _EXPIRY},
    GetAndTouch: {"expiry": _EXPIRY},
    GetAndLock: {"lock_time": st.sampled_from((1, 15))},
}
"""What else is drawn for an operation of each kind, its bases included."""


def recipes(texts: st.SearchStrategy[Place], counters: st.SearchStrategy[Place]) -> st.SearchStrategy[Recipe]:
    """Return operations of every kind, on documents of bytes and on counters."""
    return st.one_of(
        *(_recipes(name, texts) for name, kind in _KINDS.items() if not issubclass(kind, Count)),
        *(_recipes(name, counters) for name, kind in _KINDS.items() if not issubclass(kind, Store | Concatenate)),
    )


def _recipes(name: str, places: st.SearchStrategy[Place]) -> st.SearchStrategy[Recipe]:
    parameters = {
        parameter: drawn
        for kind, of_kind in _PARAMETERS.items()
        if issubclass(_KINDS[name], kind)
        for parameter, drawn in of_kind.items()
    }
    return st.builds(Recipe, kind=st.just(name), place=places, **parameters)


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault, and what it strikes."""

    opcode: int | None
    fault: Fault
    times: int = 1

    def arm(self, waiting: Faults) -> None:
        """Let the fault wait for its commands."""
        waiting.next(self.opcode, self.fault, self.times)


def reply_faults() -> st.SearchStrategy[Fault]:
    """Return faults that may strike any command: its answer is lost, late, broken, or a failure."""
    return st.one_of(
        st.just(temporary_failure()),
        st.just(drop_response()),
        st.just(hang_up()),
        st.just(hang_up_after_applying()),
        st.sampled_from((12, 25, 0, 1, 23, 24, 30)).map(lambda size: hang_up_mid_reply(bytes_sent=size)),
        st.just(garble()),
        st.sampled_from((100_000, UINT32_MAX, 100, 0, 10, 40)).map(lambda size: wrong_length(announced=size)),
        st.sampled_from((0.001, 0.3, 2.5, 3.0)).map(delay),
    )


def data_faults() -> st.SearchStrategy[Fault]:
    """Return faults for commands on documents; none of them lies about the document."""
    return st.one_of(
        reply_faults(),
        st.booleans().map(not_my_vbucket),
        st.just(locked()),
        st.sampled_from(HARMLESS_STATUSES).map(status),
        st.sampled_from(INVALIDATING_STATUSES).map(status),
    )


def strikes() -> st.SearchStrategy[Strike]:
    """Return faults of every kind, on data commands, on the bootstrap and on our own requests."""
    own = (
        Opcode.HELLO,
        Opcode.GET_ERROR_MAP,
        Opcode.SASL_LIST_MECHS,
        Opcode.SASL_AUTH,
        Opcode.SASL_STEP,
        Opcode.SELECT_BUCKET,
        Opcode.GET_CLUSTER_CONFIG,
        Opcode.GET_COLLECTION_ID,
        Opcode.NOOP,
    )
    times = st.sampled_from((1, 1, 2, 5))
    return st.one_of(
        st.builds(Strike, st.none(), data_faults(), times),
        st.builds(Strike, st.sampled_from(sorted(DATA_OPCODES)), data_faults(), times),
        st.builds(Strike, st.sampled_from(own), reply_faults(), times),
        st.builds(Strike, st.just(None), st.just(refuse_connection()), times),
    )


class _Raises:
    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        raise ZeroDivisionError("a strategy with a defect")


class _Asks:
    async def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        raise AssertionError("the state machine answers in its place")


RETRY_STRATEGIES: Mapping[str, AnyRetryStrategy | None] = {
    "default": None,
    "best effort": BestEffortRetryStrategy(),
    "fail fast": FailFastRetryStrategy(),
    "error map": ErrorMapRetryStrategy(),
    "raises": _Raises(),
    "asks": _Asks(),
}
"""Retry strategies of an operation, by the name that stands in a failing example."""


def retry_strategies() -> st.SearchStrategy[str]:
    """Return names of ``RETRY_STRATEGIES``, mostly the default one."""
    return st.sampled_from(("default",) * 5 + tuple(RETRY_STRATEGIES))


def cuts() -> st.SearchStrategy[int | None]:
    """Return how many bytes move at once; None for all there are."""
    return st.one_of(st.none(), st.integers(1, 120))
