"""Scripts of a client and its callers as lists of steps, so that Hypothesis shrinks them as it shrinks lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.properties.calls import OWN_STRATEGIES
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.testing.fakes.faults import Fault, WrongLength
from triclinium_core.testing.hypothesis_strategies import (
    RETRY_STRATEGIES,
    Strike,
    data_faults,
    operation_templates,
    strikes,
)
from triclinium_core.testing.operation_templates import OperationTemplate
from triclinium_core.testing.oracle.submissions import Place

BUCKET, SCOPE, COLLECTION, COLLECTION_ID = "default", "inventory", "people", 8
DEFAULT, NAMED = Keyspace(BUCKET), Keyspace(BUCKET, SCOPE, COLLECTION)
KEYSPACES = {DEFAULT: 0, NAMED: COLLECTION_ID}
"""Keyspaces of the documents, with their collection ids."""

REPLIES_SIZE = 100_000
"""Number of bytes that is larger than all responses in a script together."""

STRATEGY_NAMES = tuple({**RETRY_STRATEGIES, **OWN_STRATEGIES})
"""Names of the retry strategies of calls."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One operation, its retry strategy, and the time limit of its caller."""

    template: OperationTemplate
    strategy: str = "default"
    within: float | None = None
    """Seconds until the caller cancels the call; None for no limit."""


@dataclass(frozen=True, slots=True)
class CancelledCall:
    """One operation that is cancelled at a moment (see ``cancelling``), which may be after the end of the operation."""

    call: ScriptedCall
    moment: int


@dataclass(frozen=True, slots=True)
class StruckCall:
    """One operation, and a fault for it."""

    call: ScriptedCall
    strike: Strike


@dataclass(frozen=True, slots=True)
class Together:
    """Operations that one nursery runs at the same time, and faults for them."""

    calls: Sequence[ScriptedCall]
    strikes: Sequence[Strike] = ()
    within: float | None = None
    """Seconds until all calls are cancelled; None for no limit."""
    fails_after: float | None = None
    """Seconds until another task of the nursery raises an exception; None if there is no such task."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Pause without calls."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CutOff:
    """Cut of each open stream after the client has sent ``after_bytes`` more bytes on it."""

    after_bytes: int


ScriptStep = ScriptedCall | CancelledCall | StruckCall | Together | Strike | Wait | CutOff


@dataclass(frozen=True, slots=True)
class Script:
    """All steps of one client, and how it begins and ends."""

    steps: Sequence[ScriptStep]
    begins_connected: bool = True
    """Whether a connection and two documents exist before the first step."""
    piece_sizes: Sequence[int] | None = None
    leaves_by: str = "the end"
    """Exit from the client's block; one of ``WAYS_OUT``."""
    outsiders: Sequence[ScriptedCall] = ()
    """Operations that tasks outside the block have started and that are open when the block ends."""
    seed: int = 0


WAYS_OUT = ("the end", "an exception", "a group", "a cancellation")

_SHORT = (0.0, 0.001, 0.02, 0.3, 2.4, 3.0)
_seconds = st.sampled_from((0.001, 0.05, 0.6, 2.5, 25.0))


def scripts(*, max_size: int) -> st.SearchStrategy[Script]:
    """Return a strategy for scripts of at most ``max_size`` steps."""
    calls = _calls()
    struck = st.builds(Strike, st.none(), data_faults().filter(_is_honest), st.sampled_from((1, 1, 3)))
    steps = st.one_of(
        calls,
        st.builds(CancelledCall, calls, st.integers(0, 60)),
        st.builds(StruckCall, _calls(st.sampled_from(STRATEGY_NAMES)), struck),
        st.builds(
            Together,
            st.lists(calls, min_size=2, max_size=4),
            st.lists(struck, max_size=3),
            st.none() | st.sampled_from(_SHORT),
            st.none() | st.sampled_from(_SHORT),
        ),
        strikes().filter(lambda strike: _is_honest(strike.fault)),
        st.builds(Wait, _seconds),
        st.builds(CutOff, st.integers(0, 120)),
    )
    return st.builds(
        Script,
        st.lists(steps, min_size=1, max_size=max_size),
        st.booleans(),
        st.sampled_from((None, None, (24, 7, 400))),
        st.sampled_from(WAYS_OUT),
        st.lists(calls, max_size=2),
        st.integers(0, 2**16),
    )


_MOSTLY_DEFAULT = st.sampled_from(("default",) * len(STRATEGY_NAMES) + STRATEGY_NAMES)


def _calls(strategies: st.SearchStrategy[str] = _MOSTLY_DEFAULT) -> st.SearchStrategy[ScriptedCall]:
    # There are few keys, so that calls of a short script use the same documents.
    keyspaces = st.sampled_from((DEFAULT, DEFAULT, DEFAULT, NAMED))
    texts = st.builds(Place, keyspaces, st.sampled_from(("ada", "ada", "bob")))
    counters = st.builds(Place, keyspaces, st.just("hits"))
    limits = st.one_of(st.none(), st.none(), st.sampled_from(_SHORT))
    return st.builds(ScriptedCall, operation_templates(texts, counters).map(_possible), strategies, limits)


def _is_honest(fault: Fault) -> bool:
    """Return whether a client can detect the fault; it cannot if a wrong length may include a complete response."""
    return not isinstance(fault, WrongLength) or fault.announced == 0 or fault.announced >= REPLIES_SIZE


def _possible(template: OperationTemplate) -> OperationTemplate:
    """Return a template that the client accepts: a replace cannot both set and preserve the expiry."""
    return replace(template, expiry=0) if template.kind == "replace" and template.flag else template
