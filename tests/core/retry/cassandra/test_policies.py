"""The two shipped policies, compared with the page's tables for all small inputs, and checked for any input."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, strategies as st

from tests.core.retry.cassandra import page
from tests.core.retry.cassandra.failures import error_of, in_words
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import POLICIES
from triclinium_core.retry.cassandra.policies import PolicyClass

SHIPPED: dict[str, cassandra.RetryPolicy] = {
    "default": cassandra.DefaultRetryPolicy(),
    "downgrading": cassandra.ConsistencyDowngradingRetryPolicy(),
}

each_policy = rows("name", SHIPPED)
each_class = rows("policy", [cassandra.DefaultRetryPolicy, cassandra.ConsistencyDowngradingRetryPolicy])


@each_policy
@rows("event", page.PAGE["default"])
def test_every_small_input(name: str, event: str) -> None:
    """For all levels, write types, errors and small counts, the policy decides as the page specifies."""
    differences = [
        (failure, expected, actual)
        for failure in page.every_failure(event)
        if (expected := page.expected_answer(name, failure))
        != (actual := in_words(cassandra.verdict_on(SHIPPED[name], error_of(failure), retry_count=failure.retry_count)))
    ]

    assert [] == differences


def test_the_small_inputs_cover_the_page() -> None:
    """The 24,328 small inputs reach every row of the page."""
    answered: dict[tuple[str, str], set[int]] = {
        (name, event): set() for name in page.PAGE for event in page.PAGE[name]
    }
    for (name, event), reached in answered.items():
        for failure in page.every_failure(event):
            reached.add(next(row for row, (holds, _) in enumerate(page.PAGE[name][event]) if holds(failure)))

    assert {asked: set(range(len(page.PAGE[asked[0]][asked[1]]))) for asked in answered} == answered
    assert 24_328 == len(page.PAGE) * sum(1 for event in page.PAGE["default"] for _ in page.every_failure(event))


# -- Properties for any count, however large.

counts = st.one_of(st.integers(0, 4), st.integers(0, 2**31))
retry_counts = st.one_of(st.just(0), st.integers(0, 2**31))


def failures_of(event: str) -> st.SearchStrategy[page.PageFailure]:
    """Return a Hypothesis strategy for failures of one kind with any counts."""
    fields = {
        name: counts if values is page.COUNTS else st.sampled_from(values) for name, values in page.SMALL[event].items()
    }
    return st.builds(page.PageFailure, st.just(event), retry_counts, **fields)


failures = st.one_of(*map(failures_of, page.SMALL))


@given(failure=failures, name=st.sampled_from(sorted(SHIPPED)), cautious=st.booleans())
def test_no_excessive_verdict(failure: page.PageFailure, name: str, cautious: bool) -> None:
    """No policy retries a timeout or Unavailable twice; a new level is ONE or needs only known replicas (safety)."""
    policy = cassandra.policy_class(name)(rethrow_cas_write_unknown=cautious)

    verdict = cassandra.verdict_on(policy, error_of(failure), retry_count=failure.retry_count)

    if failure.retry_count > 0 and not failure.error:
        assert cassandra.RETHROW == verdict
    assert verdict.consistency in {
        None,
        cassandra.ConsistencyLevel.ONE,
        cassandra.ConsistencyLevel.TWO,
        cassandra.ConsistencyLevel.THREE,
    }
    if name == "default":
        assert verdict.consistency is None
        assert verdict.decision.name != "IGNORE"
    if verdict.consistency is not None:
        # The level exceeds the known replicas only if EACH_QUORUM has no known replica: then the level is ONE.
        assert verdict.consistency <= max(failure.replicas, 1)
        assert failure.level not in {"SERIAL", "LOCAL_SERIAL"} or failure.write_type == "UNLOGGED_BATCH"


@given(failure=failures, name=st.sampled_from(sorted(SHIPPED)), cautious=st.booleans())
def test_no_missing_verdict(failure: page.PageFailure, name: str, cautious: bool) -> None:
    """For any input, a policy decides as the page does, but with the option rethrows CasWriteUnknown (liveness)."""
    verdict = cassandra.verdict_on(
        cassandra.policy_class(name)(rethrow_cas_write_unknown=cautious),
        error_of(failure),
        retry_count=failure.retry_count,
    )

    is_taken_back = cautious and failure.error == "CasWriteUnknown"
    assert (("RETHROW", None) if is_taken_back else page.expected_answer(name, failure)) == in_words(verdict)


# -- The option ``rethrow_cas_write_unknown``.


@each_class
@rows("retry_count", [0, 1, 7])
def test_an_unknown_cas_result(policy: PolicyClass, retry_count: int) -> None:
    """CAS_WRITE_UNKNOWN is retried on the next node, as in the driver; with the option it is rethrown (decision A7)."""
    cautious = policy(rethrow_cas_write_unknown=True)

    assert cassandra.RETRY_NEXT == policy().on_error_response(
        error=cassandra.CasWriteUnknown(), retry_count=retry_count
    )
    assert cassandra.RETHROW == cautious.on_error_response(error=cassandra.CasWriteUnknown(), retry_count=retry_count)


@each_class
@rows("value", [None, 1, "yes"])
def test_an_invalid_option(policy: PolicyClass, value: object) -> None:
    """An option that is neither True nor False is refused when the policy is created."""
    with refusal_of("rethrow_cas_write_unknown") as caught:
        policy(rethrow_cas_write_unknown=value)  # type: ignore[arg-type]

    assert f"rethrow_cas_write_unknown={value!r} must be True or False" == str(caught.value)


# -- Every method refuses invalid arguments.

GOOD: dict[str, dict[str, object]] = {
    "on_read_timeout": {
        "consistency": cassandra.ConsistencyLevel.QUORUM,
        "block_for": 2,
        "received": 1,
        "data_present": True,
        "retry_count": 0,
    },
    "on_write_timeout": {
        "consistency": cassandra.ConsistencyLevel.QUORUM,
        "write_type": cassandra.WriteType.SIMPLE,
        "block_for": 2,
        "received": 1,
        "retry_count": 0,
    },
    "on_unavailable": {"consistency": cassandra.ConsistencyLevel.QUORUM, "required": 2, "alive": 1, "retry_count": 0},
    "on_request_aborted": {"error": cassandra.ClosedConnection(), "retry_count": 0},
    "on_error_response": {"error": cassandra.Overloaded(), "retry_count": 0},
}

NO_COUNTS = [-1, -(2**40), True, 1.0, "1", None]
NONSENSE: dict[str, list[object]] = {
    "consistency": ["QUORUM", 4, None, cassandra.WriteType.SIMPLE],
    "write_type": ["SIMPLE", "PAXOS", 0, None],
    "data_present": [0, 1, None, "yes"],
    "error": [None, "Overloaded", cassandra.Overloaded, ValueError("no error of ours")],
    **dict.fromkeys(["block_for", "received", "required", "alive", "retry_count"], NO_COUNTS),
}


def ask(policy: cassandra.RetryPolicy, method: str, arguments: dict[str, object]) -> object:
    """Return the verdict of the policy's method."""
    asked: Callable[..., object] = getattr(policy, method)
    return asked(**arguments)


@each_policy
@rows(("method", "parameter"), [(method, parameter) for method, arguments in GOOD.items() for parameter in arguments])
def test_invalid_arguments_are_refused(name: str, method: str, parameter: str) -> None:
    """A method that gets an invalid argument raises an error with its name and value."""
    ask(SHIPPED[name], method, GOOD[method])

    for value in NONSENSE[parameter]:
        with refusal_of(parameter) as caught:
            ask(SHIPPED[name], method, GOOD[method] | {parameter: value})

        assert str(caught.value).startswith(f"{parameter}={value!r} must be ")


@each_policy
def test_an_error_of_the_other_kind(name: str) -> None:
    """An error response is refused as an aborted request, and an aborted request as an error response."""
    for method, error in (
        ("on_request_aborted", cassandra.Overloaded()),
        ("on_error_response", cassandra.ClosedConnection()),
    ):
        with refusal_of("error"):
            ask(SHIPPED[name], method, {"error": error, "retry_count": 0})


# -- Lookup of policies by name.


@rows(
    ("name", "expected"),
    [
        ("default", cassandra.DefaultRetryPolicy),
        ("DefaultRetryPolicy", cassandra.DefaultRetryPolicy),
        ("downgrading", cassandra.ConsistencyDowngradingRetryPolicy),
        ("ConsistencyDowngradingRetryPolicy", cassandra.ConsistencyDowngradingRetryPolicy),
    ],
)
def test_by_name(name: str, expected: PolicyClass) -> None:
    """A policy class is found by its short name and by its name in the driver's configuration."""
    assert expected is cassandra.policy_class(name)
    cassandra.require_policy(cassandra.policy_class(name)())


@rows("name", ["", "Default", "fallthrough", None, 7, ["default"], cassandra.DefaultRetryPolicy])
def test_an_unknown_name(name: object) -> None:
    """An unknown policy name raises an error that has the name and the valid names."""
    with refusal_of("policy") as caught:
        cassandra.policy_class(name)  # type: ignore[arg-type]

    assert f"policy={name!r} is not known; choose one of {', '.join(POLICIES)}" == str(caught.value)
