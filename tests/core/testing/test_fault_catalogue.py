"""Catalogue of faults for random histories, compared with the client's real reaction to each status."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import get_args

import pytest

from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import fault_catalogue
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.error_map import ERROR_MAP
from triclinium_core.testing.fakes.faults import AnswerNotMyVbucket, AnswerStatus, CommandFault, ServiceFault, status
from triclinium_core.testing.simulation import Simulation

DEFAULT = Keyspace("default")


@pytest.fixture(scope="module")
def fates() -> Mapping[int, tuple[bool, bool]]:
    """Return for each status in a response to a read whether a retry survives it and whether its stream is replaced."""
    simulation = Simulation(FakeNode())
    found: dict[int, tuple[bool, bool]] = {}
    for code in [*Status, *(row.code for row in ERROR_MAP.rows), 0x7ABC]:
        simulation.submit(Get(DEFAULT, "ada"))
        simulation.run()
        streams = set(simulation.links)
        simulation.node.faults.next(Opcode.GET, status(code))
        token = simulation.submit(Get(DEFAULT, "ada"))
        simulation.run()
        error = simulation.errors.get(token)
        is_survived = isinstance(error, errors.DocumentNotFoundException) and error.context.retry_attempts == 1
        found[code] = is_survived, streams != set(simulation.links)
    return found


def test_every_kind_of_fault() -> None:
    """Commands on a document have all kinds of faults; other commands only those that do not concern a document."""
    kinds = set(get_args(CommandFault))

    assert kinds == {type(fault) for fault in chain(*fault_catalogue.DATA_FAULTS)}
    assert kinds - {AnswerNotMyVbucket} == {type(fault) for fault in chain(*fault_catalogue.REPLY_FAULTS)}
    assert {Status.TEMPORARY_FAILURE} == {
        fault.code for fault in chain(*fault_catalogue.REPLY_FAULTS) if isinstance(fault, AnswerStatus)
    }


def test_every_kind_of_fault_over_http() -> None:
    """Requests to a service have all kinds of service faults."""
    assert set(get_args(ServiceFault)) == {type(fault) for fault in chain(*fault_catalogue.SERVICE_FAULTS)}


def test_retried_statuses(fates: Mapping[int, tuple[bool, bool]]) -> None:
    """The client survives each status that counts as retried, and beyond these only stale-config statuses."""
    survived = {code for code, (is_survived, _) in fates.items() if is_survived}
    retried = {*fault_catalogue.RETRIED_STATUSES, *fault_catalogue.RETRIED_BY_MAP}

    assert set() == retried - survived
    assert {Status.NOT_MY_VBUCKET, Status.CONFIG_ONLY} >= survived - retried


def test_statuses_that_invalidate_the_stream(fates: Mapping[int, tuple[bool, bool]]) -> None:
    """The client reconnects after each status that counts as invalidating, and not after harmless ones."""
    spoiling = {code for code, (_, is_spoilt) in fates.items() if is_spoilt}

    assert {Status.NO_BUCKET, Status.AUTH_STALE, Status.NOT_INITIALIZED} == {*fault_catalogue.INVALIDATING_STATUSES}
    assert {*fault_catalogue.INVALIDATING_STATUSES} <= spoiling
    assert set() == spoiling & {*fault_catalogue.HARMLESS_STATUSES}
    assert {
        *fault_catalogue.RETRIED_STATUSES,
        *fault_catalogue.RETRIED_BY_MAP,
        Status.NOT_SUPPORTED,
        Status.INTERNAL_ERROR,
    } < {*fault_catalogue.HARMLESS_STATUSES}
