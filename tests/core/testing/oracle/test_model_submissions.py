"""The model: of whom and of what it takes note."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import append, exists, get, increment, named, upsert
from tests.core.testing.callers import Callers
from triclinium_core.errors import (
    DocumentExistsException,
    DocumentNotFoundException,
)
from triclinium_core.kv.operation.requests import Noop, Operation
from triclinium_core.kv.operation.results import Cas, Done, ExistsResult
from triclinium_core.testing.oracle.model import Model

THERE_IS_NONE = ExistsResult(exists=False, cas=Cas(0))


def test_open() -> None:
    """Those who wait stand in the order of their coming."""
    callers = Callers()
    tokens = [callers.ask(operation) for operation in (get(), exists(), get(), get(), get())]
    callers.hear(tokens[1], THERE_IS_NONE)
    callers.miss(tokens[2], DocumentNotFoundException())
    callers.leave(tokens[3], ambiguous=True)

    assert [tokens[0], tokens[4]] == [submission.token for submission in callers.model.open]
    assert tokens == list(callers.model.submissions)


def test_what_concerns_no_document() -> None:
    """It is no part of any history, nor are tokens of which the model has not heard."""
    callers = Callers()
    token = callers.ask(Noop(get().keyspace))
    callers.hear(token, Done())
    callers.miss(token, DocumentExistsException())
    callers.leave(token, ambiguous=False)

    assert {} == callers.model.submissions
    assert Model().submitted(1, Noop(get().keyspace)) is None


def test_instants() -> None:
    """Each is later than the one before, whether time passes or not."""
    model = Model()
    instants = [model.instant(), model.instant()]
    model.now = 3.0
    instants.append(model.instant())

    assert sorted(set(instants)) == instants
    assert [0.0, 0.0, 3.0] == [seconds for seconds, _ in instants]


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (upsert(b"old"), "value=b'old' must be new"),
        (upsert(b"<1><2>"), "value=b'<1><2>' must be new"),
        (append(b"<1>"), "value=b'<1>' must be new"),
        (increment(delta=4), "delta=4 must be the newest"),
        (increment(delta=3), "delta=3 must be the newest"),
    ],
    ids=named,
)
def test_writes_without_a_mark(operation: Operation, message: str) -> None:
    """A value or a delta that would not tell who wrote it is the test's own mistake."""
    callers = Callers()
    callers.upsert()

    with pytest.raises(ValueError, match=message):
        callers.ask(operation)
    assert [] == callers.model.open
