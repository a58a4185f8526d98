"""Execution profiles: what each means, which policies they share, and what is said of a document that is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.core.retry.cassandra.policies_for_tests import Always
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policies import ConsistencyDowngradingRetryPolicy, DefaultRetryPolicy
from triclinium_core.retry.cassandra.profile_settings import OPTIONS, ProfilesDocument
from triclinium_core.retry.cassandra.profiles import ExecutionProfile, ExecutionProfiles
from triclinium_core.retry.cassandra.request import CassandraRequest, RequestKind
from triclinium_core.retry.cassandra.speculation import ConstantSpeculativeExecutionPolicy, NoSpeculativeExecution
from triclinium_core.retry.cassandra.verdicts import RETHROW

PAGE = """
[retry_policy]
class = "DefaultRetryPolicy"

[profiles.custom-retries.retry_policy]
class = "CustomRetryPolicy"

[profiles.slow]
request_timeout = 30.0
"""
"""The example of the driver's page."""


class Custom(Always):
    """A policy of an embedder's own, which notes its options."""

    def __init__(self, **options: object) -> None:
        super().__init__(RETHROW)
        self.options = options


def test_the_example_of_the_page() -> None:
    """One profile has a policy of its own; the other shares the default one, and has a timeout of its own."""
    profiles = ExecutionProfiles.from_toml(PAGE, policies={"CustomRetryPolicy": Custom})

    assert ("default", "custom-retries", "slow") == profiles.names
    assert isinstance(profiles.find("custom-retries").retry_policy, Custom)
    assert isinstance(profiles.default.retry_policy, DefaultRetryPolicy)
    assert profiles.find("slow").retry_policy is profiles.default.retry_policy
    assert [2.0, 2.0, 30.0] == [profiles.find(name).request_timeout for name in profiles.names]


def test_an_empty_document() -> None:
    """The default profile is there, and is what the driver's is."""
    expected = ExecutionProfile(
        name="default",
        retry_policy=DefaultRetryPolicy(),
        speculative_execution_policy=NoSpeculativeExecution(),
        default_idempotence=False,
        request_timeout=2.0,
        consistency=ConsistencyLevel.LOCAL_ONE,
        serial_consistency=ConsistencyLevel.SERIAL,
    )

    assert expected == ExecutionProfiles.from_toml("").default
    assert expected == ExecutionProfiles.from_mapping({}).find()
    assert expected == ExecutionProfiles().find("default")
    assert expected == ExecutionProfile()


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
    ("consistency", "ONE", ConsistencyLevel.ONE),
    ("consistency", ConsistencyLevel.ALL, ConsistencyLevel.ALL),
    ("serial_consistency", "SERIAL", ConsistencyLevel.SERIAL),
    ("retry_policy", {"class": "DefaultRetryPolicy"}, DefaultRetryPolicy()),
    (
        "retry_policy",
        {"rethrow_cas_write_unknown": True},
        ConsistencyDowngradingRetryPolicy(rethrow_cas_write_unknown=True),
    ),
    ("speculative_execution_policy", {"class": "none"}, NoSpeculativeExecution()),
    (
        "speculative_execution_policy",
        {"delay": 0.5},
        ConstantSpeculativeExecutionPolicy(max_executions=3, delay=0.5),
    ),
]


@pytest.mark.parametrize(("option", "value", "expected"), CHANGES)
def test_each_option_is_inherited_alone(option: str, value: object, expected: object) -> None:
    """A profile that says one thing of its own has all others from the default one."""
    document: Any = {**FULL, "profiles": {"other": {option: value}, "same": {}}}
    profiles = ExecutionProfiles.from_mapping(document)

    of_default = {name: getattr(profiles.default, name) for name in OPTIONS}
    of_other = {name: getattr(profiles.find("other"), name) for name in OPTIONS}

    assert {**of_default, option: expected} == of_other
    assert expected != of_default[option]
    assert of_default == {name: getattr(profiles.find("same"), name) for name in OPTIONS}


def test_every_option_is_tried() -> None:
    """None is left out of the changes above."""
    assert set(OPTIONS) == {option for option, _, _ in CHANGES}


SHARED: list[tuple[dict[str, object], dict[str, object], bool]] = [
    ({}, {}, True),
    ({"class": "default"}, {"class": "DefaultRetryPolicy"}, True),
    ({"class": "default"}, {"class": "default", "rethrow_cas_write_unknown": False}, True),
    ({"class": "default"}, {"class": "default", "rethrow_cas_write_unknown": True}, False),
    ({"class": "default"}, {"class": "downgrading"}, False),
    ({"class": "Own", "a": 1, "b": "x"}, {"class": "Own", "b": "x", "a": 1}, True),
    ({"class": "Own", "a": {"b": [1], "c": 2}}, {"class": "Own", "a": {"c": 2, "b": [1]}}, True),
    ({"class": "Own", "a": 1}, {"class": "Own"}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": 2}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": True}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": 1.0}, False),
    ({"class": "Own", "a": [1]}, {"class": "Own", "a": [True]}, False),
    ({"class": "Own", "a": math.nan}, {"class": "Own", "a": float("nan")}, True),
    ({"class": "Own"}, {"class": "Other"}, False),
    ({"class": "Own", "a": Custom}, {"class": "Own", "a": Custom}, True),
    ({"class": "Own", "a": [Custom]}, {"class": "Own", "a": [Always]}, False),
]


class Other(Custom):
    """Another one."""


@pytest.mark.parametrize(("first", "second", "shared"), SHARED)
def test_one_policy_for_one_configuration(first: dict[str, object], second: dict[str, object], shared: bool) -> None:
    """Profiles share a policy exactly where class and options come to the same; siblings too."""
    profiles = ExecutionProfiles.from_mapping(
        {"profiles": {"first": {"retry_policy": first}, "second": {"retry_policy": second}}},
        policies={"Own": Custom, "Other": Other},
    )

    assert shared is (profiles.find("first").retry_policy is profiles.find("second").retry_policy)


def test_speculative_policies_are_shared_as_well() -> None:
    """Each kind of policy has its own configuration; a difference in one does not split the other."""
    profiles = ExecutionProfiles.from_toml(
        """
        profiles.a.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.5 }
        profiles.b.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.5 }
        profiles.c.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.25 }
        """
    )
    a, b, c = (profiles.find(name) for name in "abc")

    assert a.speculative_execution_policy is b.speculative_execution_policy
    assert a.speculative_execution_policy is not c.speculative_execution_policy
    assert a.retry_policy is c.retry_policy


def test_options_go_with_their_class() -> None:
    """A profile that names another class does not inherit options that the class would not know (decision A11)."""
    profiles = ExecutionProfiles.from_toml(
        """
        retry_policy = { class = "default", rethrow_cas_write_unknown = true }
        profiles.own.retry_policy = { class = "Own", limit = 3 }
        profiles.same.retry_policy = { class = "DefaultRetryPolicy" }
        profiles.downgrading.retry_policy = { class = "downgrading" }
        """,
        policies={"Own": Custom},
    )
    own = profiles.find("own").retry_policy

    assert isinstance(own, Custom)
    assert {"limit": 3} == own.options
    assert profiles.default.retry_policy is profiles.find("same").retry_policy
    assert ConsistencyDowngradingRetryPolicy() == profiles.find("downgrading").retry_policy


def test_a_policy_of_ones_own_is_made_once() -> None:
    """However many profiles share it, its class is called once, with the options by name."""
    made: list[dict[str, object]] = []

    def make(*, limit: int, patience: float = 1.0) -> Custom:
        made.append({"limit": limit, "patience": patience})
        return Custom()

    profiles = ExecutionProfiles.from_toml(
        """
        retry_policy = { class = "Own", limit = 3 }
        profiles.same.retry_policy = { class = "Own", limit = 3, patience = 1.0 }
        profiles.heir.consistency = "ALL"
        profiles.other.retry_policy.limit = 4
        """,
        policies={"Own": make},
    )

    assert [{"limit": 3, "patience": 1.0}, {"limit": 4, "patience": 1.0}] == made
    assert 2 == len({id(profiles.find(name).retry_policy) for name in profiles.names})


@pytest.mark.parametrize("name", ["none", "Default", "", None, 1, ["slow"]])
def test_an_unknown_profile(name: Any) -> None:
    """It is named, and so are those that there are."""
    profiles = ExecutionProfiles.from_toml(PAGE, policies={"CustomRetryPolicy": Custom})

    with pytest.raises(InvalidArgumentException) as caught:
        profiles.find(name)

    assert f"name={name!r} is no profile; there are default, custom-retries, slow" == str(caught.value)
    assert "name" == caught.value.parameter


# -- Documents that are wrong.

WRONG: list[tuple[str, str, str]] = [
    ("request_timeout = 0", "request_timeout", "=0 must be a number of seconds above 0 and up to 1e9, or inf"),
    ("request_timeout = -0.5", "request_timeout", "=-0.5 must be a number of seconds above 0"),
    ("request_timeout = nan", "request_timeout", "=nan must be a number of seconds above 0"),
    ("request_timeout = -inf", "request_timeout", "=-inf must be a number of seconds above 0"),
    ("request_timeout = true", "request_timeout", "=True must be a number of seconds above 0"),
    ("request_timeout = '2 seconds'", "request_timeout", "='2 seconds' must be a number of seconds above 0"),
    ("request_timeout = 1" + "0" * 400, "request_timeout", "=1000000000000"),
    ("request_timeout" + ".a" * 3000 + " = 1", "request_timeout", "={'a': {'a': "),
    ("default_idempotence = 1", "default_idempotence", "=1 must be True or False"),
    ("consistency = 'quorum'", "consistency", "='quorum' must be one of ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_"),
    ("consistency = 4", "consistency", "=4 must be one of ANY, ONE, "),
    ("serial_consistency = 'QUORUM'", "serial_consistency", "='QUORUM' must be one of SERIAL, LOCAL_SERIAL"),
    ("consistancy = 'ONE'", "consistancy", " is not known; a profile has default_idempotence, request_timeout, con"),
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
        " is no option of DefaultRetryPolicy; it has rethrow_cas_write_unknow",
    ),
    (
        "retry_policy.rethrow_cas_write_unknown = 'yes'",
        "retry_policy.rethrow_cas_write_unknown",
        "='yes' must be True or False",
    ),
    ("retry_policy.class = 'Own'", "retry_policy.limit", " is missing; Own needs it"),
    (
        "retry_policy = { class = 'Own', limit = 1, more = 2 }",
        "retry_policy.more",
        " is no option of Own; it has limit",
    ),
    (
        "retry_policy.class = 'Raises'",
        "retry_policy",
        ": Raises cannot be made of these options: ZeroDivisionError('no",
    ),
    ("retry_policy.class = 'NoPolicy'", "retry_policy", ": policy={} has no method on_read_timeout"),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = 2, delay = -0.1 }",
        "speculative_execution_policy.delay",
        "=-0.1 must be a number of seconds",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = 2, delay = nan }",
        "speculative_execution_policy.delay",
        "=nan must be a number of seconds",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = -1, delay = 0.1 }",
        "speculative_execution_policy.max_executions",
        "=-1 must be a whole number of at least 1",
    ),
    (
        "speculative_execution_policy = { class = 'constant', max_executions = 2 }",
        "speculative_execution_policy.delay",
        " is missing; constant needs it",
    ),
    (
        "speculative_execution_policy.delay = 0.1",
        "speculative_execution_policy.delay",
        " is no option of NoSpeculativeExecutionPolicy; it has none",
    ),
    (
        "speculative_execution_policy.class = 'Own'",
        "speculative_execution_policy.class",
        "='Own' is not known; choose one of none, NoSpeculativeExecutionPolicy, constant, ConstantSpeculativeExecution",
    ),
]


def raises(**options: object) -> Custom:
    """Raise, as a class may whose options do not fit each other."""
    raise ZeroDivisionError("no")


def own(limit: int) -> Custom:
    """Return a policy with one option."""
    return Custom(limit=limit)


OWN: dict[str, Any] = {"Own": own, "Raises": raises, "NoPolicy": dict}


@pytest.mark.parametrize("where", ["", "profiles.slow.", 'profiles."a.b c".', "profiles.a-b_9."])
@pytest.mark.parametrize(("text", "path", "message"), WRONG, ids=[path for _, path, _ in WRONG])
def test_a_wrong_document(where: str, text: str, path: str, message: str) -> None:
    """The place in the document is named, and the value, and what to say instead; in any profile alike."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfiles.from_toml(where + text, policies=OWN)

    assert str(caught.value).startswith(f"{where}{path}{message}")
    assert f"{where}{path}" == caught.value.parameter


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({"profiles": []}, "profiles", "profiles=[] must be a table"),
        ({"profiles": {"slow": None}}, "profiles.slow", "profiles.slow=None must be a table"),
        ({"profiles": {"default": {}}}, "profiles.default", "profiles.default is a name that the top level has; move"),
        ({"profiles": {"": {}}}, 'profiles.""', 'profiles."" has no name; a profile needs one'),
        ({"profiles": {7: {}}}, 'profiles."7"', 'profiles."7" has no name; a profile needs one'),
        ({"profiles": {"slow": {"profiles": {}}}}, "profiles.slow.profiles", "profiles.slow.profiles is not known; "),
        ({None: 1}, '"None"', '"None" is not known; a profile has '),
        ({"consistency": None}, "consistency", "consistency=None must be one of ANY, ONE"),
        ({"consistency": ["ONE"]}, "consistency", "consistency=['ONE'] must be one of ANY, ONE"),
        ({"retry_policy": {7: 1}}, 'retry_policy."7"', 'retry_policy."7" is no option of DefaultRetryPolicy'),
        ({"retry_policy": {"class": "Raises", 7: 1}}, 'retry_policy."7"', 'retry_policy."7" is no option of Raises'),
        ({"retry_policy": {"class": ["Own"]}}, "retry_policy.class", "retry_policy.class=['Own'] is not known; "),
        ([], "document", "document=[] must be a mapping of options, and of profiles"),
        (None, "document", "document=None must be a mapping of options, and of profiles"),
    ],
)
def test_a_wrong_mapping(document: Any, path: str, message: str) -> None:
    """What TOML cannot say, a mapping can; it is refused as clearly."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfiles.from_mapping(document, policies=OWN)

    assert str(caught.value).startswith(message)
    assert path == caught.value.parameter


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("= 1", id="no key"),
        pytest.param("request_timeout = 1\nrequest_timeout = 2", id="twice"),
        pytest.param("x = 1" + "0" * 5000, id="an endless number"),
        pytest.param("x = " + "[" * 20_000, id="a deep nesting"),
    ],
)
def test_what_is_no_toml(text: str) -> None:
    """Whatever the parser raises, one error comes out, with the parser's as the cause."""
    with pytest.raises(InvalidArgumentException, match="^text is no TOML: ") as caught:
        ExecutionProfiles.from_toml(text)

    assert "text" == caught.value.parameter
    assert caught.value.__cause__ is not None


def test_what_is_no_text() -> None:
    """Bytes are decoded by whoever read them."""
    with pytest.raises(InvalidArgumentException, match=r"^text=b'' must be a string; decode it first$"):
        ExecutionProfiles.from_toml(b"")  # type: ignore[arg-type]


def test_options_that_are_nested_too_deeply() -> None:
    """Dotted keys nest as deeply as they like without troubling the parser."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfiles.from_toml(
            "retry_policy" + ".a" * 3000 + " = 1\nretry_policy.class = 'Own'", policies={"Own": Custom}
        )

    assert "retry_policy has an option that is nested too deeply" == str(caught.value)


def test_the_cause_is_what_a_class_raised() -> None:
    """An exception of the embedder's class can be looked at."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfiles.from_toml("retry_policy.class = 'Raises'", policies=OWN)

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "mistake",
    [
        "consistancy = 'ONE'",
        "request_timeout = -1",
        "retry_policy.class = 'Unknown'",
        "retry_policy = { class = 'default', rethrow_cas_write_unknown = 1 }",
        "retry_policy = { class = 'Counts', limit = 1 }",
        "speculative_execution_policy = { class = 'constant', max_executions = 2, delay = -1 }",
    ],
)
def test_all_is_checked_before_anything_is_made(mistake: str) -> None:
    """A mistake in the last profile keeps the classes of the first ones from being called."""
    made: list[str] = []

    def counts() -> Custom:
        made.append("one")
        return Custom()

    good = "retry_policy.class = 'Counts'\nprofiles.first.consistency = 'ONE'\n"
    ExecutionProfiles.from_toml(good, policies={"Counts": counts})
    assert ["one"] == made

    with pytest.raises(InvalidArgumentException):
        ExecutionProfiles.from_toml(f"{good}profiles.last.{mistake}", policies={"Counts": counts})

    assert ["one"] == made


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"default": Custom}, "policies: 'default' must be a name of your own, none of default, DefaultRetryPolicy, "),
        ({"": Custom}, "policies: '' must be a name of your own"),
        ({7: Custom}, "policies: 7 must be a name of your own"),
        ({"Own": Custom()}, "policies: 'Own' is Custom("),
        ([Custom], "policies=["),
    ],
)
def test_wrong_policies_of_ones_own(policies: Any, message: str) -> None:
    """A name that is taken, a policy that is made already, and no mapping at all."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfiles.from_toml("", policies=policies)

    assert str(caught.value).startswith(message)
    assert "policies" == caught.value.parameter


# -- Profiles that are made by hand.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "name='' must be a string, and not empty"),
        ({"name": None}, "name=None must be a string, and not empty"),
        ({"retry_policy": "default"}, "policy='default' has no method on_read_timeout"),
        ({"retry_policy": DefaultRetryPolicy}, "is a class; make one: DefaultRetryPolicy()"),
        ({"speculative_execution_policy": 2}, "speculation=2 must be an object with next_execution"),
        ({"default_idempotence": "yes"}, "default_idempotence='yes' must be True or False"),
        ({"request_timeout": 0}, "request_timeout=0 must be a number of seconds above 0"),
        ({"consistency": "ONE"}, "consistency='ONE' must be one of ANY, ONE"),
        ({"serial_consistency": ConsistencyLevel.ONE}, "must be one of SERIAL, LOCAL_SERIAL"),
    ],
)
def test_a_wrong_profile(arguments: Any, message: str) -> None:
    """The same is asked of a profile that is made by hand."""
    with pytest.raises(InvalidArgumentException) as caught:
        ExecutionProfile(**arguments)

    assert message in str(caught.value)


def test_profiles_by_hand() -> None:
    """Profiles can be gathered; the default one is added where it is missing."""
    slow = ExecutionProfile(name="slow", request_timeout=30.0)

    assert ("default", "slow") == ExecutionProfiles(slow).names
    assert slow is ExecutionProfiles(slow).find("slow")
    assert 7.0 == ExecutionProfiles(slow, ExecutionProfile(request_timeout=7.0)).default.request_timeout
    assert "<ExecutionProfiles default, slow>" == repr(ExecutionProfiles(slow))


def test_wrong_profiles_by_hand() -> None:
    """Two of one name, and what is none."""
    with pytest.raises(InvalidArgumentException, match="^profiles: two are called 'slow'; give one another name$"):
        ExecutionProfiles(ExecutionProfile(name="slow"), ExecutionProfile(name="slow"))
    with pytest.raises(InvalidArgumentException, match="^profiles: 'slow' is no ExecutionProfile$"):
        ExecutionProfiles("slow")  # type: ignore[arg-type]


def test_derived() -> None:
    """A derived profile keeps the name and the policies, so a policy cannot be changed behind the name's back."""
    base = ExecutionProfile(name="slow", retry_policy=Custom(), request_timeout=30.0, default_idempotence=True)

    derived = base.derived(request_timeout=60.0, consistency=ConsistencyLevel.ALL, default_idempotence=False)

    assert "slow" == derived.name
    assert base.retry_policy is derived.retry_policy
    assert base.speculative_execution_policy is derived.speculative_execution_policy
    assert (60.0, ConsistencyLevel.ALL, False) == (
        derived.request_timeout,
        derived.consistency,
        derived.default_idempotence,
    )
    assert ConsistencyLevel.SERIAL is derived.serial_consistency
    assert (30.0, ConsistencyLevel.LOCAL_ONE) == (base.request_timeout, base.consistency)
    assert base == base.derived()
    with pytest.raises(InvalidArgumentException, match="^request_timeout=-1 must be"):
        base.derived(request_timeout=-1)


def test_requests() -> None:
    """A statement's own words come first, the profile's second; a level is none of a PREPARE's."""
    policy, speculation = Custom(), ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1)
    profile = ExecutionProfile(
        retry_policy=policy,
        speculative_execution_policy=speculation,
        default_idempotence=True,
        request_timeout=7.0,
        consistency=ConsistencyLevel.TWO,
    )

    assert (
        CassandraRequest(
            policy=policy, idempotent=True, consistency=ConsistencyLevel.TWO, timeout=7.0, speculation=speculation
        )
        == profile.request()
    )
    assert CassandraRequest(
        policy=policy, idempotent=False, consistency=ConsistencyLevel.ONE, timeout=1.0, speculation=speculation
    ) == profile.request(idempotent=False, consistency=ConsistencyLevel.ONE, timeout=1.0)
    assert None is profile.request(kind=RequestKind.PREPARE).consistency


# -- By law: any document at all.

anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["default", "downgrading", "constant", "none", "Own", "ONE", "LOCAL_SERIAL", ""]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*OPTIONS, "class", "a"]), inner, max_size=3)
    ),
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
    """Liveness: whatever a profile says, it has; what it leaves out, it has from the default one; equals share."""
    document: Any = {**top, "profiles": tables}
    profiles = ExecutionProfiles.from_mapping(document, policies={"Own": Custom})

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


@given(
    document=anything | st.fixed_dictionaries({}, optional={**dict.fromkeys(OPTIONS, anything), "profiles": anything})
)
def test_any_document(document: Any) -> None:
    """Safety: a document is read, or refused with one exception that says where; nothing else comes out."""
    try:
        profiles = ExecutionProfiles.from_mapping(document, policies={"Own": Custom})
    except InvalidArgumentException as error:
        assert error.parameter
        assert str(error).startswith(error.parameter)
        return
    assert "default" == profiles.default.name
