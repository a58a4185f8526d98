"""Documents of profiles: inheritance of options, and errors of an invalid document."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, strategies as st

from tests.core.retry.cassandra.profiles.profile_cases import OWN, Custom
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra.profiles.settings import DRIVER_NAMES, OPTIONS, ProfilesDocument

FULL: ProfilesDocument = {
    "default_idempotence": True,
    "request_timeout": 5,
    "consistency": "QUORUM",
    "serial_consistency": "LOCAL_SERIAL",
    "retry_policy": {"class": "downgrading"},
    "speculative_execution_policy": {"class": "constant", "max_executions": 3, "delay": 0.1},
}


CHANGES: list[tuple[str, Any, Any]] = [
    ("default_idempotence", False, False),
    ("request_timeout", math.inf, math.inf),
    ("consistency", "ONE", cassandra.ConsistencyLevel.ONE),
    ("consistency", cassandra.ConsistencyLevel.ALL, cassandra.ConsistencyLevel.ALL),
    ("serial_consistency", "SERIAL", cassandra.ConsistencyLevel.SERIAL),
    ("retry_policy", {"class": "DefaultRetryPolicy"}, cassandra.DefaultRetryPolicy()),
    (
        "retry_policy",
        {"rethrow_cas_write_unknown": True},
        cassandra.ConsistencyDowngradingRetryPolicy(rethrow_cas_write_unknown=True),
    ),
    ("speculative_execution_policy", {"class": "none"}, cassandra.NoSpeculativeExecution()),
    (
        "speculative_execution_policy",
        {"delay": 0.5},
        cassandra.ConstantSpeculativeExecutionPolicy(max_executions=3, delay=0.5),
    ),
]


@rows(("option", "value", "expected"), CHANGES)
def test_each_option_is_inherited_alone(option: str, value: object, expected: object) -> None:
    """If a profile sets one option, it inherits all other options from the default profile."""
    document: Any = {**FULL, "profiles": {"other": {option: value}, "same": {}}}
    profiles = cassandra.ExecutionProfiles.from_mapping(document)

    of_default = {name: getattr(profiles.default, name) for name in OPTIONS}
    of_other = {name: getattr(profiles.find("other"), name) for name in OPTIONS}

    assert {**of_default, option: expected} == of_other
    assert expected != of_default[option]
    assert of_default == {name: getattr(profiles.find("same"), name) for name in OPTIONS}


def test_every_option_is_tried() -> None:
    """The rows of ``CHANGES`` change every option."""
    assert set(OPTIONS) == {option for option, _, _ in CHANGES}


DRIVER: list[tuple[str, str, object]] = [
    ("basic.request.timeout = '30 seconds'", "request_timeout", 30.0),
    ("request.timeout = '1500 ms'", "request_timeout", 1.5),
    ("request.timeout = inf", "request_timeout", math.inf),
    ("basic.request.consistency = 'ONE'", "consistency", cassandra.ConsistencyLevel.ONE),
    (
        "basic.request.serial-consistency = 'LOCAL_SERIAL'",
        "serial_consistency",
        cassandra.ConsistencyLevel.LOCAL_SERIAL,
    ),
    ("basic.request.default-idempotence = true", "default_idempotence", True),
    (
        "advanced.retry-policy = { class = 'DefaultRetryPolicy', rethrow-cas-write-unknown = true }",
        "retry_policy",
        cassandra.DefaultRetryPolicy(rethrow_cas_write_unknown=True),
    ),
    (
        "advanced.speculative-execution-policy = { class = 'constant', max-executions = 3, delay = '100 milliseconds' }",
        "speculative_execution_policy",
        cassandra.ConstantSpeculativeExecutionPolicy(max_executions=3, delay=0.1),
    ),
]


@rows("where", ["", "datastax-java-driver."])
@rows(("text", "option", "expected"), DRIVER)
def test_an_option_of_the_driver(where: str, text: str, option: str, expected: object) -> None:
    """An option name of the driver sets its option in the default profile and in any other profile."""
    default = cassandra.ExecutionProfiles.from_toml(where + text).default
    other = cassandra.ExecutionProfiles.from_toml(f'{where}profiles."eu.west".{text}').find("eu.west")

    assert expected == getattr(default, option)
    assert expected == getattr(other, option)


def test_every_option_has_a_name_of_the_driver() -> None:
    """Every option has an option name of the driver, and the rows of ``DRIVER`` cover every option."""
    assert set(OPTIONS) == set(DRIVER_NAMES.values()) == {option for _, option, _ in DRIVER}


def test_dotted_keys_and_tables_are_merged() -> None:
    """A dotted key adds its value to the table that another key defines."""
    document: Any = {
        "datastax-java-driver.advanced.retry-policy.class": "Own",
        "retry_policy": {"limit": 1},
        "profiles": {"slow": {"request": {"timeout": "5 minutes"}}},
        "profiles.slow.basic.request.consistency": "ONE",
        "datastax-java-driver.profiles.fast.request.timeout": "1ms",
    }
    profiles = cassandra.ExecutionProfiles.from_mapping(document, policies=OWN)
    slow, fast = profiles.find("slow"), profiles.find("fast")

    assert isinstance(profiles.default.retry_policy, Custom)
    assert (300.0, cassandra.ConsistencyLevel.ONE) == (slow.request_timeout, slow.consistency)
    assert (0.001, cassandra.ConsistencyLevel.LOCAL_ONE) == (fast.request_timeout, fast.consistency)


WRONG: list[tuple[str, str, str]] = [
    ("request_timeout = 0", "request_timeout", "=0 must be a number of seconds or a timedelta: more than 0"),
    ("request_timeout = nan", "request_timeout", "=nan must be a number of seconds or a timedelta: more than 0"),
    ("request_timeout = true", "request_timeout", "=True must be a number of seconds or a timedelta: more than 0"),
    ("request_timeout = 1" + "0" * 400, "request_timeout", "=1000000000000"),
    (
        "request_timeout = 0x1" + "0" * 6000,
        "request_timeout",
        "=<int> must be a number of seconds or a timedelta: more than 0",
    ),
    ("request_timeout" + ".a" * 3000 + " = 1", "request_timeout", "={'a': {'a': "),
    ("default_idempotence = 1", "default_idempotence", "=1 must be True or False"),
    ("consistency = 'quorum'", "consistency", "='quorum' must be one of ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_"),
    ("serial_consistency = 'QUORUM'", "serial_consistency", "='QUORUM' must be one of SERIAL, LOCAL_SERIAL"),
    ("consistancy = 'ONE'", "consistancy", " is not known; a profile has default_idempotence"),
    ("retry_policy = 'default'", "retry_policy", "='default' must be a table"),
    (
        "retry_policy.class = 'Fallthrough'",
        "retry_policy.class",
        "='Fallthrough' is not known; choose one of default, ",
    ),
    ("retry_policy.class = 1", "retry_policy.class", "=1 is not known; choose one of default, DefaultRetryPolicy, "),
    (
        "retry_policy.max = 1",
        "retry_policy.max",
        " is not an option of DefaultRetryPolicy; it has rethrow_cas_write_unknow",
    ),
    (
        "retry_policy.rethrow_cas_write_unknown = 'yes'",
        "retry_policy.rethrow_cas_write_unknown",
        "='yes' must be True or False",
    ),
    (
        "retry_policy.rethrow_cas_write_unknown = 0x1" + "0" * 6000,
        "retry_policy.rethrow_cas_write_unknown",
        "=<int> must be True or False",
    ),
    ("retry_policy.class = 'Own'", "retry_policy.limit", " is missing; Own needs it"),
    (
        "retry_policy = { class = 'Own', limit = 1, more = 2 }",
        "retry_policy.more",
        " is not an option of Own; it has limit",
    ),
    (
        "retry_policy.class = 'Raises'",
        "retry_policy",
        ": Raises ",
    ),
    ("retry_policy.class = 'NoPolicy'", "retry_policy", ": policy={} has no method on_read_timeout"),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = 2, delay = -0.1 }",
        "speculative_execution_policy.delay",
        "=-0.1 must be a number of seconds",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = -1, delay = 0.1 }",
        "speculative_execution_policy.max_executions",
        "=-1 must be an integer of at least 1",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = 2 }",
        "speculative_execution_policy.delay",
        " is missing; constant needs it",
    ),
    (
        "speculative_execution_policy.delay = 0.1",
        "speculative_execution_policy.delay",
        " is not an option of NoSpeculativeExecutionPolicy; it has none",
    ),
    ("request.timeout = '30 secs'", "request.timeout", "='30 secs' is not a duration"),
    ("request_timeout = '30'", "request_timeout", "='30' has no unit"),
    ("basic.request.timeout = 30", "basic.request.timeout", "=30 has no unit"),
    ("basic.request.timeout = '0 s'", "basic.request.timeout", "=0.0 must be a number of seconds"),
    ("basic.request.timeouts = '1 s'", "basic.request.timeouts", " is not known; a profile has "),
    ("basic.contact-points = ['n1']", "basic.contact-points", " is not known; a profile has "),
    ("basic = 1", "basic", "=1 must be a table"),
    ("basic.request = 1", "basic.request", "=1 must be a table"),
    ("advanced.retry-policy.class = 'a.B'", "advanced.retry-policy.class", "='a.B' is not known; choose one of "),
    ("advanced.retry-policy.max-x = 1", "advanced.retry-policy.max-x", " is not an option of DefaultRetryPolicy"),
    (
        "advanced.speculative-execution-policy = { class = 'constant', max-executions = 2, delay = 100 }",
        "advanced.speculative-execution-policy.delay",
        "=100 has no unit",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max-executions = 2, max_executions = 2, delay = 0 }",
        "speculative_execution_policy.max_executions",
        " is given twice",
    ),
    (
        "speculative_execution_policy.class = 'Own'",
        "speculative_execution_policy.class",
        "='Own' is not known; choose one of none, NoSpeculativeExecutionPolicy, constant, ConstantSpeculativeExecution",
    ),
]


@rows("where", ["", 'profiles."a.b c".'])
@rows(("text", "path", "message"), WRONG)
def test_an_invalid_document(where: str, text: str, path: str, message: str) -> None:
    """In any profile, the error about an invalid document starts with the path of the mistake and describes it."""
    with refusal_of(f"{where}{path}") as caught:
        cassandra.ExecutionProfiles.from_toml(where + text, policies=OWN)

    assert str(caught.value).startswith(f"{where}{path}{message}")


@rows(
    ("document", "path", "message"),
    [
        ({"profiles": []}, "profiles", "profiles=[] must be a table"),
        ({"profiles": {"slow": None}}, "profiles.slow", "profiles.slow=None must be a table"),
        ({"profiles": {"default": {}}}, "profiles.default", "profiles.default "),
        ({"profiles": {"": {}}}, 'profiles.""', 'profiles."" '),
        ({"profiles": {7: {}}}, 'profiles."7"', 'profiles."7" '),
        ({"profiles": {"slow": {"profiles": {}}}}, "profiles.slow.profiles", "profiles.slow.profiles is not known; "),
        ({None: 1}, '"None"', '"None" is not known; a profile has '),
        ({"consistency": None}, "consistency", "consistency=None must be one of ANY, ONE"),
        ({"consistency": ["ONE"]}, "consistency", "consistency=['ONE'] must be one of ANY, ONE"),
        ({"retry_policy": {7: 1}}, 'retry_policy."7"', 'retry_policy."7" is not an option of DefaultRetryPolicy'),
        (
            {"retry_policy": {"class": "Raises", 7: 1}},
            'retry_policy."7"',
            'retry_policy."7" is not an option of Raises',
        ),
        ({"retry_policy": {"class": ["Own"]}}, "retry_policy.class", "retry_policy.class=['Own'] is not known; "),
        ({"request.timeout": 5}, '"request.timeout"', '"request.timeout"=5 has no unit'),
        (
            {"request_timeout": 5, "request.timeout": "5 s"},
            '"request.timeout"',
            '"request.timeout" is given twice, also as request_timeout; keep one',
        ),
        (
            {"retry_policy": {"class": "Own"}, "advanced.retry-policy.class": "Own"},
            '"advanced.retry-policy.class".class',
            '"advanced.retry-policy.class".class is given twice, also as retry_policy.class',
        ),
        (
            {"profiles": {"a": {"request_timeout": 5}}, "profiles.a.request_timeout": 5},
            '"profiles.a.request_timeout".a.request_timeout',
            '"profiles.a.request_timeout".a.request_timeout is given twice',
        ),
        ({"datastax-java-driver": {"request_timeout": 5}}, "datastax-java-driver.request_timeout", "datastax-java-dri"),
        ([], "document", "document=[] must be a mapping"),
        (None, "document", "document=None must be a mapping"),
    ],
)
def test_an_invalid_mapping(document: Any, path: str, message: str) -> None:
    """An invalid mapping that TOML cannot express is refused with the same details as an invalid document."""
    with refusal_of(path) as caught:
        cassandra.ExecutionProfiles.from_mapping(document, policies=OWN)

    assert str(caught.value).startswith(message)


KEYS = [
    *OPTIONS,
    *DRIVER_NAMES,
    "class",
    "a",
    "request",
    "basic",
    "advanced",
    "timeout",
    "datastax-java-driver",
    "profiles.a",
]

anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["default", "downgrading", "constant", "none", "Own", "ONE", "LOCAL_SERIAL", "", "5 s", "5"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


likely: dict[str, st.SearchStrategy[Any]] = {
    "default_idempotence": st.booleans(),
    "request_timeout": st.sampled_from([0.5, 1, math.inf]),
    "consistency": st.sampled_from(["ONE", "QUORUM"]),
    "serial_consistency": st.sampled_from(["SERIAL", "LOCAL_SERIAL"]),
    "retry_policy": st.sampled_from([{}, {"class": "default"}, {"class": "downgrading"}, {"class": "Own", "a": 1}]),
    "speculative_execution_policy": st.sampled_from([{}, {"class": "constant", "max_executions": 2, "delay": 0}]),
}


good_tables = st.fixed_dictionaries({}, optional=likely)


names = st.sampled_from(["a", "b", "slow"])


@given(top=good_tables, tables=st.dictionaries(names, good_tables))
def test_good_documents(top: Any, tables: Any) -> None:
    """Each profile has its own options, inherits all further options, and shares equal policies (liveness)."""
    document: Any = {**top, "profiles": tables}
    profiles = cassandra.ExecutionProfiles.from_mapping(document, policies={"Own": Custom})

    for name, table in tables.items():
        profile = profiles.find(name)
        for option in set(OPTIONS) - set(table):
            assert getattr(profiles.default, option) is getattr(profile, option)
        for option in set(table) & {"default_idempotence", "request_timeout"}:
            assert table[option] == getattr(profile, option)
        for option in set(table) & {"consistency", "serial_consistency"}:
            assert table[option] == getattr(profile, option).name
    shipped = {
        profile.retry_policy
        for profile in map(profiles.find, profiles.names)
        if not isinstance(profile.retry_policy, Custom)
    }
    assert len(shipped) == len({id(policy) for policy in shipped})


@given(document=anything | st.fixed_dictionaries({}, optional={**dict.fromkeys(KEYS, anything), "profiles": anything}))
def test_any_document(document: Any) -> None:
    """Any document is read, or refused with an ArgumentError that has the path (safety)."""
    try:
        profiles = cassandra.ExecutionProfiles.from_mapping(document, policies={"Own": Custom})
    except ArgumentError as error:
        assert error.parameter
        assert str(error).startswith(error.parameter)
        return
    assert "default" == profiles.default.name


words = st.sampled_from(
    [
        *OPTIONS,
        *["profiles", "slow", "class", '"default"', "1", "nan", "true", ".", "=", "[", "]", "{", "}", ",", "'", "#"],
        "\n",
    ]
)


@given(text=st.lists(words, max_size=12).map("".join) | st.text(max_size=30))
def test_any_text(text: str) -> None:
    """Any string is read, or refused with an ArgumentError, whether it is TOML or not (safety)."""
    try:
        profiles = cassandra.ExecutionProfiles.from_toml(text)
    except ArgumentError as error:
        assert error.parameter
        return
    assert "default" == profiles.default.name
