"""``triclinium explain cassandra``: options of a Cassandra request, and sentences of its explanation.

The command defines no rules: it builds a case, and shows the answers of the policies and of the core's request machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import click

from triclinium._cli._input import WrongInput, choose, choose_name, spelled
from triclinium._cli._options import COUNT, completing, given, option, takes
from triclinium._cli.explain.explanation_text import print_explanation, retries
from triclinium_core.explain.cassandra.error_names import ABORTS, ANSWERS, kind_of
from triclinium_core.explain.cassandra.explain import CassandraCase, explain
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import POLICIES
from triclinium_core.tools.vectors import cassandra as vectors
from triclinium_core.tools.vectors.fields import Question

LEVELS, WRITE_TYPES = vectors.LEVELS, vectors.WRITE_TYPES

OTHER = "other"
"""Name on the command line for every error without its own name."""

LEVEL_DEFAULT = cassandra.ConsistencyLevel.QUORUM
"""Default consistency level. It is not LOCAL_ONE, the driver's default, at which a single response suffices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CassandraOptions:
    """Options of the command; None for an option without a default that was not given."""

    policy: str = option(metavar="NAME", default="default", help=f"Retry policy: {', '.join(POLICIES)}.")
    consistency: str | None = option(metavar="LEVEL", help="Consistency level in the error.  [default: QUORUM]")
    received: int | None = option(**COUNT, help="Number of replicas that answered in time.")
    block_for: int | None = option(**COUNT, help="Number of responses that the level requires.")
    data_present: bool | None = option(
        "--data-present/--no-data-present",
        default=None,
        help="Whether one of the responses to a read had the data.  [default: no-data-present]",
    )
    write_type: str | None = option(metavar="TYPE", help="Type of the write that timed out.  [default: SIMPLE]")
    required: int | None = option(**COUNT, help="Number of replicas that the level requires.")
    alive: int | None = option(**COUNT, help="Number of replicas that the coordinator considers alive.")
    error: str | None = option(
        metavar="NAME", help="Error from the coordinator, or the reason for its missing response."
    )
    retry_count: int = option(**COUNT, default=0, help="Number of retries that verdicts have already requested.")
    idempotent: bool = option(
        "--idempotent/--not-idempotent", default=False, help="Whether executing the statement twice is harmless."
    )


StatementFailure = cassandra.RequestAborted | cassandra.FrameTooLong | cassandra.CoordinatorError


@dataclass(frozen=True, slots=True)
class StatementEvent:
    """Event of a statement, with its required and its optional options."""

    build: Callable[[CassandraOptions], StatementFailure]
    needs: tuple[str, ...]
    details: frozenset[str] = frozenset()


def build_case(event_name: str, options: CassandraOptions) -> CassandraCase:
    """Return the case that the event and the options describe.

    Raises:
        WrongInput: a name is unknown, options are missing, or options contradict each other.
    """
    name = choose_name(event_name, EVENTS, "event")
    event = EVENTS[name]
    event_options = given(options, EVENT_OPTIONS)
    for each in event_options:
        if each not in event.needs and each not in event.details:
            raise WrongInput(f"{spelled(each)} does not apply to {name}; omit it")
    missing = [spelled(each) for each in event.needs if each not in event_options]
    if missing:
        raise WrongInput(f"{name} requires {' and '.join(missing)}; see --help")
    return CassandraCase(
        error=event.build(options),
        policy=choose(options.policy, POLICIES, "policy")(),
        idempotent=options.idempotent,
        retry_count=options.retry_count,
    )


def _asked(event: str) -> Callable[[CassandraOptions], StatementFailure]:
    """Return a function that builds the error of an event, as for a file of questions."""

    def build(options: CassandraOptions) -> StatementFailure:
        level, kind = options.consistency, options.write_type
        fields = {
            **asdict(options),
            "cl": LEVEL_DEFAULT.name if level is None else choose_name(level, LEVELS, "consistency level"),
            "write_type": cassandra.WriteType.SIMPLE.name
            if kind is None
            else choose_name(kind, WRITE_TYPES, "write type"),
            "data_present": bool(options.data_present),
        }
        return vectors.EVENTS[event](Question(fields))

    return build


def _request_aborted(options: CassandraOptions) -> StatementFailure:
    name = options.error or ""
    return (kind_of(name, ABORTS) or choose(name, _ABORTED, "error of request-aborted"))()


def _error_response(options: CassandraOptions) -> StatementFailure:
    name = options.error or ""
    return (kind_of(name, ANSWERS) or choose(name, _ANSWERED, "error of error-response"))()


_ABORTED: Mapping[str, Callable[[], StatementFailure]] = {
    **ABORTS,
    "FrameTooLong": cassandra.FrameTooLong,
    OTHER: lambda: cassandra.RequestAborted("any other reason"),
}
_ANSWERED: Mapping[str, Callable[[], StatementFailure]] = {
    **ANSWERS,
    OTHER: lambda: cassandra.CoordinatorError("an unknown code"),
}

EVENTS: Mapping[str, StatementEvent] = {
    "read-timeout": StatementEvent(
        _asked("read_timeout"), ("received", "block_for"), frozenset({"consistency", "data_present"})
    ),
    "write-timeout": StatementEvent(
        _asked("write_timeout"), ("received", "block_for"), frozenset({"consistency", "write_type"})
    ),
    "unavailable": StatementEvent(_asked("unavailable"), ("required", "alive"), frozenset({"consistency"})),
    "request-aborted": StatementEvent(_request_aborted, ("error",)),
    "error-response": StatementEvent(_error_response, ("error",)),
}

EVENT_OPTIONS = frozenset[str]().union(*(event.details.union(event.needs) for event in EVENTS.values()))
"""All options that describe the event."""


def circumstances(case: CassandraCase) -> str:
    """Return the retries so far, the idempotence and the policy of a statement in sentences."""
    idempotent = "idempotent" if case.idempotent else "not idempotent"
    return f"So far: {retries(case.retry_count)}. The statement is {idempotent}; its policy is {type(case.policy).__name__}."


EPILOG = f"""\b
Examples:
  triclinium explain cassandra read-timeout --received 2 --block-for 2 --policy downgrading
  triclinium explain cassandra write-timeout --write-type BATCH_LOG --received 0 --block-for 2 --idempotent
  triclinium explain cassandra unavailable --required 2 --alive 1 --consistency LOCAL_QUORUM
  triclinium explain cassandra request-aborted --error Heartbeat --idempotent
  triclinium explain cassandra error-response --error IS_BOOTSTRAPPING

Consistency levels: {", ".join(LEVELS)}.

Write types: {", ".join(WRITE_TYPES)}.

Errors of request-aborted: {", ".join(ABORTS)}, FrameTooLong, and "other" for any other error.

Errors of error-response: {", ".join(ANSWERS)}, and "other" for any other error.

Clauses: "driver's page" is the page of the Cassandra Java driver on retries; decisions such as A2 are on the page
"Decisions" of this project's documentation, docs/explanation/decisions.md.

Exit status: 0 if the command prints an explanation, whatever the decision; 2 if the input is invalid.
"""


@click.command("cassandra", epilog=EPILOG)
@click.argument("event", required=False, shell_complete=completing(lambda ctx: EVENTS))
@takes(CassandraOptions)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on one line.")
def explain_cassandra(*, event: str | None, as_json: bool, options: CassandraOptions) -> None:
    """Explain why the Cassandra driver would or would not retry a statement.

    Name the EVENT (read-timeout, write-timeout, unavailable, request-aborted, error-response) and give its details.
    The policies and the request machine of the core decide. Each step names its section of the driver's page, or a
    decision of this project.
    """
    if event is None:
        raise WrongInput(f"EVENT is missing; choose from {', '.join(EVENTS)}")
    case = build_case(event, options)
    print_explanation(explain(case), circumstances(case), as_json=as_json)
