"""Names of Cassandra errors in commands and files."""

from __future__ import annotations

from tests.rows import rows
from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS, aborted, answered, canonical, kind_of
from triclinium_core.retry.cassandra import errors


@rows(
    ("name", "kind"),
    [
        ("ServerError", errors.ServerError),
        ("SERVER_ERROR", errors.ServerError),
        ("Truncate", errors.TruncateError),
        ("TRUNCATE_ERROR", errors.TruncateError),
        ("TruncateException", errors.TruncateError),
        ("INVALID", errors.InvalidQuery),
        ("IS_BOOTSTRAPPING", errors.Bootstrapping),
        ("SYNTAX_ERROR", errors.InvalidSyntax),
        ("CONFIG_ERROR", errors.InvalidConfiguration),
        ("ALREADY_EXISTS", errors.AlreadyExists),
        ("AUTH_ERROR", errors.AuthenticationError),
        ("OverloadedException", errors.Overloaded),
        ("CAS_WRITE_UNKNOWN", errors.CasWriteUnknown),
        ("function-failure", errors.FunctionFailure),
        (" Unprepared ", errors.Unprepared),
        ("ClosedConnection", errors.ClosedConnection),
        ("closed_connection", errors.ClosedConnection),
        ("Heartbeat", errors.HeartbeatFailure),
        ("HeartbeatException", errors.HeartbeatFailure),
        ("HeartbeatFailure", errors.HeartbeatFailure),
    ],
)
def test_names_of_errors(name: str, kind: type[errors.CassandraError]) -> None:
    """An error can be given by its class name, a name of the protocol or the name of the driver's exception."""
    is_abort = issubclass(kind, errors.RequestAborted)

    assert kind is kind_of(name, ABORTS if is_abort else ANSWERS)
    assert kind is type(aborted(name) if is_abort else answered(name))


@rows("name", ["", "Throwable", "ReadTimeout", "Unavailable"])
def test_unknown_name_gives_the_base_class(name: str) -> None:
    """An unknown name, or the name of an error with details, gives the base class, and the error's text is the name."""
    assert (errors.CoordinatorError, name) == (type(answered(name)), str(answered(name)))
    assert (errors.RequestAborted, name) == (type(aborted(name)), str(aborted(name)))


def test_every_error_without_details_has_a_name() -> None:
    """All error codes but the three with details have a name, and so have all aborts."""
    detailed = {errors.ReadTimeout, errors.WriteTimeout, errors.Unavailable}

    assert set(errors.CODES.values()) - detailed == set(ANSWERS.values())
    assert set(errors.RequestAborted.__subclasses__()) == set(ABORTS.values())


@rows("names", [ABORTS, ANSWERS])
def test_no_spelling_names_two_errors(names: dict[str, type[errors.CassandraError]]) -> None:
    """Two names with equal canonical spellings select the same error class."""
    assert len(set(names.values())) == len({kind_of(name, names) for name in names})
    assert all(kind is kind_of(canonical(name), names) for name, kind in names.items())
