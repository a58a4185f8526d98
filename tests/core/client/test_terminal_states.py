"""Terminal states, which a refusal of the credentials or a bucket causes and a later success clears."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.core.client.client_cases import ONE, TWO
from tests.core.runtime.kv import simulated
from triclinium_core import errors
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import RetryReason
from triclinium_core.retry.couchbase.failures import HINTS
from triclinium_core.retry.couchbase.strategy import BestEffortRetryStrategy
from triclinium_core.retry.couchbase.tables.kv_status import Status
from triclinium_core.testing.fakes import faults


@pytest.mark.parametrize("is_known", [False, True])
def test_wrong_password(is_known: bool) -> None:
    """If the password is wrong, an operation under the default strategy fails immediately with advice (C1, C6), even if
    the client already knows this from the connection without a bucket.
    """
    options = simulated.client_options(authenticator=PasswordAuthenticator("Administrator", "wrong"))
    simulation = simulated.Recorded(options=options)
    if is_known:
        simulation.flow()
    error = simulation.failure(errors.AuthenticationFailureException, simulated.get())

    assert 0.0 == simulation.now
    assert ("AUTHENTICATION_ERROR", 0) == (error.context.refused_reason, error.context.retry_attempts)
    assert HINTS[RetryReason.AUTHENTICATION_ERROR] in str(error)
    assert "wrong" not in str(error)


def test_accepted_credentials_clear_the_state() -> None:
    """A refusal on one connection stops no operation on a ready one, and a success clears the state (decision C6)."""
    simulation = simulated.ready()
    simulation.node.faults.next(Opcode.SASL_STEP, faults.status(Status.AUTH_ERROR), times=1)
    simulation.lose(ONE)
    simulation.live(0.01)
    while_refused = simulation.finish(simulated.upsert("a"))
    simulation.live(1.0)
    simulation.lose(TWO)
    token = simulation.finish(simulated.upsert("b"))

    assert while_refused in simulation.results
    assert token in simulation.results


@pytest.mark.parametrize("other", [Status.TEMPORARY_FAILURE, Status.NOT_SUPPORTED])
def test_other_failures_of_sasl_are_not_terminal(other: Status) -> None:
    """After SASL failures of other kinds, operations are retried until their deadline (decision C6)."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.SASL_STEP, faults.status(other))
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.get())

    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == error.context.retry_reasons


def test_missing_bucket() -> None:
    """If the node responds to SELECT_BUCKET with status 0x24, only operations on that bucket fail (decision C7)."""
    simulation = simulated.ready()
    error = simulation.failure(
        errors.BucketAccessException, simulated.get("k", document_operations.Keyspace("nowhere"))
    )

    assert 0.0 == simulation.now
    assert "BUCKET_ACCESS_ERROR" == error.context.refused_reason
    assert "check that the bucket exists" in str(error)
    simulation.result(simulated.upsert())


def test_bucket_that_becomes_accessible() -> None:
    """If a bucket can be selected again, its terminal state is cleared."""
    simulation = simulated.Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS))
    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.live(1.0)
    simulation.result(simulated.upsert())
    simulation.node.faults.always(None, faults.refuse_connection())
    simulation.lose(simulation.newest)
    error = simulation.failure(errors.UnambiguousTimeoutException, simulated.get())

    assert "BUCKET_ACCESS_ERROR" not in error.context.retry_reasons


def test_a_denied_bucket_is_not_retried() -> None:
    """The client selects a denied bucket again only for a new operation, and not before the backoff ends."""
    simulation = simulated.Recorded()
    simulation.node.faults.always(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS))
    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.failure(errors.BucketAccessException, simulated.get())
    denied = simulation.commands(Opcode.SELECT_BUCKET)
    simulation.live(3600.0)

    assert 1 == len(denied) == len(simulation.commands(Opcode.SELECT_BUCKET))

    simulation.failure(errors.BucketAccessException, simulated.get())
    simulation.failure(errors.BucketAccessException, simulated.get())

    assert 2 == len(simulation.commands(Opcode.SELECT_BUCKET))


def test_retries_on_a_denied_bucket() -> None:
    """Each retry of an operation selects the denied bucket again after the reconnect backoff."""
    simulation = simulated.Recorded()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, faults.status(Status.NO_ACCESS), times=5)
    simulation.result(simulated.upsert(), retry_strategy=BestEffortRetryStrategy())
    opened = [at for at, order in simulation.opened_at if order.stream > 1]

    assert 6 == len(opened)
    assert all(later - sooner > 0.009 for sooner, later in pairwise(opened))
