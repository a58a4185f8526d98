"""Queued and standing faults of a node, one of which strikes a command."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes import faults
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.fault_table import Faults
from triclinium_core.testing.fakes.faults import HangUpBeforeApplying
from triclinium_core.testing.fakes.services.faults import cut_body, endless_body


@rows(
    ("make", "parameter"),
    [
        (lambda: Faults().next(256, faults.hang_up()), "opcode"),
        (lambda: Faults().next("GET", faults.hang_up()), "opcode"),  # type: ignore[arg-type]
        (lambda: Faults().next(None, faults.hang_up(), times=0), "times"),
        (lambda: Faults().next(None, 5), "fault"),  # type: ignore[arg-type]
        (lambda: Faults().next(None, faults.hang_up), "fault"),  # type: ignore[arg-type]
        (lambda: Faults().next(Opcode.HELLO, faults.refuse_connection()), "opcode"),
        (lambda: Faults().always(-1, faults.hang_up()), "opcode"),
        (lambda: Faults().always(Opcode.HELLO, faults.refuse_connection()), "opcode"),
        (lambda: Faults().always(None, HangUpBeforeApplying), "fault"),  # type: ignore[arg-type]
        (lambda: Faults().next(None, endless_body()), "fault"),
        (lambda: Faults().next(Opcode.GET, cut_body(bytes_sent=1)), "fault"),
        (lambda: Faults().next(Service.QUERY, faults.locked()), "fault"),
        (lambda: Faults().next(Service.QUERY, faults.refuse_connection()), "opcode"),
        (lambda: Faults().always(Service.KV, faults.hang_up()), "opcode"),
    ],
)
def test_refuses_impossible_targets(make: Callable[[], object], parameter: str) -> None:
    """An invalid target or number, a fault that does not suit the target, or an object of another type is refused."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter


@pytest.mark.parametrize("method", ["next", "always"])
def test_error_names_missing_parentheses(method: str) -> None:
    """The error for a function in place of its fault advises calling it, and nothing is queued."""
    waiting = Faults()

    with pytest.raises(errors.InvalidArgumentException, match=r"call it: temporary_failure\(\)$"):
        getattr(waiting, method)(Opcode.SET, faults.temporary_failure)
    assert 0 == waiting.pending
    assert waiting.take(Opcode.SET) is None


def test_next_faults_strike_in_order() -> None:
    """Faults of ``next`` strike in their order and number, with or without an opcode."""
    waiting = Faults()
    waiting.next(None, faults.drop_response(), times=2)
    waiting.next(Opcode.GET, faults.hang_up())
    waiting.next(Opcode.SET, faults.garble())
    assert 4 == waiting.pending

    struck = [waiting.take(Opcode.GET) for _ in range(4)]

    assert [faults.drop_response(), faults.drop_response(), faults.hang_up(), None] == struck
    assert 1 == waiting.pending
    assert faults.garble() == waiting.take(Opcode.SET)
    assert 0 == waiting.pending


@rows("opcode", [*Opcode, 0x77])
def test_without_an_opcode_strikes_documents_only(opcode: int) -> None:
    """A fault without an opcode strikes only commands on documents, not NOOP, bootstrap or unknown opcodes."""
    waiting = Faults()
    waiting.always(None, faults.hang_up())

    assert (faults.hang_up() if opcode in DATA_OPCODES else None) == waiting.take(opcode)
    waiting.next(None, faults.hang_up())
    waiting.take(opcode)
    assert (opcode not in DATA_OPCODES) == waiting.pending


def test_clear_forgets_everything() -> None:
    """After ``clear``, no fault strikes."""
    waiting = Faults()
    for fault in (faults.hang_up(), faults.refuse_connection()):
        waiting.next(None, fault)
        waiting.always(None, fault)
    waiting.clear()

    assert 0 == waiting.pending
    assert waiting.take(Opcode.GET) is None
    assert not waiting.take_refusal()


def test_services_and_commands_have_their_own() -> None:
    """A fault for a service strikes no command, and a fault for commands strikes no request."""
    waiting = Faults()
    waiting.next(Service.QUERY, cut_body(bytes_sent=1))
    waiting.always(Service.SEARCH, faults.hang_up())
    waiting.always(None, faults.garble())

    assert [None, faults.hang_up()] == [waiting.take_of(service) for service in (Service.VIEWS, Service.SEARCH)]
    assert faults.garble() == waiting.take(Opcode.GET)
    assert [cut_body(bytes_sent=1), None] == [waiting.take_of(Service.QUERY) for _ in range(2)]
