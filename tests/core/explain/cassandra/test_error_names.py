"""Errors by the names that people and files call them."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS, aborted, answered, canonical, kind_of
from triclinium_core.retry.cassandra import errors as e


@rows(
    ("name", "kind"),
    [
        ("ServerError", e.ServerError),
        ("SERVER_ERROR", e.ServerError),
        ("Truncate", e.TruncateError),
        ("TRUNCATE_ERROR", e.TruncateError),
        ("TruncateException", e.TruncateError),
        ("INVALID", e.InvalidQuery),
        ("IS_BOOTSTRAPPING", e.Bootstrapping),
        ("SYNTAX_ERROR", e.InvalidSyntax),
        ("CONFIG_ERROR", e.InvalidConfiguration),
        ("ALREADY_EXISTS", e.AlreadyExists),
        ("AUTH_ERROR", e.AuthenticationError),
        ("OverloadedException", e.Overloaded),
        ("CAS_WRITE_UNKNOWN", e.CasWriteUnknown),
        ("function-failure", e.FunctionFailure),
        (" Unprepared ", e.Unprepared),
    ],
)
def test_answers(name: str, kind: type[e.CoordinatorError]) -> None:
    """The class, the protocol's name and the driver's exception all mean the same."""
    assert kind is kind_of(name, ANSWERS)
    assert kind is type(answered(name))


@rows(
    ("name", "kind"),
    [
        ("ClosedConnection", e.ClosedConnection),
        ("closed_connection", e.ClosedConnection),
        ("Heartbeat", e.HeartbeatFailure),
        ("HeartbeatException", e.HeartbeatFailure),
        ("HeartbeatFailure", e.HeartbeatFailure),
    ],
)
def test_aborts(name: str, kind: type[e.RequestAborted]) -> None:
    """They have their own names."""
    assert kind is kind_of(name, ABORTS)
    assert kind is type(aborted(name))


@rows("name", ["", "Throwable", "ReadTimeout", "Unavailable"])
def test_what_is_not_known_is_any_other(name: str) -> None:
    """It keeps its name as its text; the errors with details have no method of that kind."""
    assert (e.CoordinatorError, name) == (type(answered(name)), str(answered(name)))
    assert (e.RequestAborted, name) == (type(aborted(name)), str(aborted(name)))


def test_every_error_without_details_has_a_name() -> None:
    """Every code of the protocol but three, and every abort."""
    detailed = {e.ReadTimeout, e.WriteTimeout, e.Unavailable}

    assert set(e.CODES.values()) - detailed == set(ANSWERS.values())
    assert set(e.RequestAborted.__subclasses__()) == set(ABORTS.values())


@rows("names", [ABORTS, ANSWERS])
def test_no_spelling_names_two_errors(names: dict[str, type[e.CassandraError]]) -> None:
    """Names that look alike to whoever reads them mean the same."""
    assert len(set(names.values())) == len({kind_of(name, names) for name in names})
    assert all(kind is kind_of(canonical(name), names) for name, kind in names.items())
