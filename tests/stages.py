"""Check of stages of operations and requests in tests: each assignment must follow the table."""

from __future__ import annotations

from typing import Any

from triclinium_core.runtime.lifecycle.live import Live
from triclinium_core.runtime.lifecycle.stages import NEXT_STAGES, Stage

_FIELD = Live.__dict__["stage"]


def _get(live: Live[Any]) -> Stage:
    stage = _FIELD.__get__(live)
    assert isinstance(stage, Stage)
    return stage


def _set(live: Live[Any], stage: Stage) -> None:
    before = _get(live)
    assert stage in NEXT_STAGES[before], f"{live.request.name} cannot go from {before.name} to {stage.name}"
    _FIELD.__set__(live, stage)


def check_stages() -> None:
    """Check all later assignments of stages against the table."""
    type.__setattr__(Live, "stage", property(_get, _set))
