"""Options: an invalid value raises an error that names the parameter, and no text contains a password."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.options import (
    SASL_MECHANISMS,
    SCRAM_ITERATIONS_MAX,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.retry import couchbase

TIMEOUTS = ("kv", "kv_durable", "kv_scan", "connect", "keep_alive_interval", "keep_alive")
CONNECTION_STRING = "couchbase://127.0.0.1"

make_authenticator = cast("Callable[..., PasswordAuthenticator]", PasswordAuthenticator)
make_token = cast("Callable[..., JwtAuthenticator]", JwtAuthenticator)
make_certificate = cast("Callable[..., CertificateAuthenticator]", CertificateAuthenticator)
make_timeouts = cast("Callable[..., TimeoutOptions]", TimeoutOptions)
make_options = cast("Callable[..., ClientOptions]", ClientOptions)


def test_defaults_are_those_of_the_rfc() -> None:
    """The timeouts default to those of SDK-RFC 0059 "Configuration", and the strategy to that of decision C1."""
    options = ClientOptions(connection_string=CONNECTION_STRING)

    assert (2.5, 10.0, 10.0) == (options.timeouts.kv, options.timeouts.kv_durable, options.timeouts.connect)
    assert 75.0 == options.timeouts.kv_scan
    assert {75.0} == {
        options.timeouts.of_service(service) for service in couchbase.Service if service is not couchbase.Service.KV
    }
    assert 1.0 == options.timeouts.idle_http_connection
    assert couchbase.FastFailOnTerminalErrorRetryStrategy is type(options.retry_strategy)
    assert (20, 50.0, 5.0, 60.0) == (
        options.circuit_breaker.volume_threshold,
        options.circuit_breaker.error_threshold_percentage,
        options.circuit_breaker.sleep_window,
        options.circuit_breaker.rolling_window,
    )
    assert (True, False, False) == (
        options.compression,
        options.hello_after_auth,
        options.renegotiate_on_corrupt_error_map,
    )


@given(password=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8))
def test_password_is_never_shown(password: str) -> None:
    """The repr of the options does not contain the password."""
    options = ClientOptions(connection_string=CONNECTION_STRING, authenticator=PasswordAuthenticator("ada", password))

    assert "PasswordAuthenticator(username='ada', allowed_sasl_mechanisms=None, scram_iterations_min=4000)" == repr(
        options.authenticator
    )
    assert repr(replace(options, authenticator=PasswordAuthenticator("ada", ""))) == repr(options)


@pytest.mark.parametrize("password", [None, b"secret", 5, "se\0cret", "se\ud800cret", "\udfff"])
def test_wrong_password(password: object) -> None:
    """A password that cannot be encoded raises an error that does not contain the password."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_authenticator("ada", password)

    assert "password" == caught.value.parameter
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("token", ["a", "eyJ.e30.x-_~+/", "e30=", "e30=="])
def test_a_token_is_never_shown(token: str) -> None:
    """The repr of the options does not contain the token."""
    options = ClientOptions(connection_string=CONNECTION_STRING, authenticator=JwtAuthenticator(token))

    assert "JwtAuthenticator(allow_unencrypted=False)" == repr(options.authenticator)
    assert f"{token}'" not in repr(options)


@rows(
    "token",
    ["", "=", None, b"secret", 5, "se cret", "se\x01cret", "se\0cret", "secret\n", "se=cret", "sécret", "se,cret"],
)
def test_wrong_token(token: object) -> None:
    """A string that is not a token (RFC 6750 §2.1) raises an error that does not contain the string."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_token(token)

    assert "token" == caught.value.parameter
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("allow_unencrypted", [None, 1, "yes"])
def test_wrong_allow_unencrypted(allow_unencrypted: object) -> None:
    """``allow_unencrypted`` is rejected unless it is a boolean and passed by keyword."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_token("a.b.c", allow_unencrypted=allow_unencrypted)

    assert "allow_unencrypted" == caught.value.parameter
    with pytest.raises(TypeError):
        make_token("a.b.c", True)


@pytest.mark.parametrize(
    ("parameter", "arguments"),
    [
        ("cert_path", {"cert_path": ""}),
        ("cert_path", {"cert_path": b"ada.pem"}),
        ("cert_path", {"cert_path": "a\0da.pem"}),
        ("cert_path", {"cert_path": 7}),
        ("key_path", {"cert_path": "ada.pem", "key_path": ""}),
        ("key_path", {"cert_path": "ada.pem", "key_path": ["ada.key"]}),
        ("key_path", {"key_path": "ada.key"}),
        ("key_password", {"cert_path": "ada.pem", "key_password": b"secret"}),
        ("key_password", {"key_password": "secret"}),
    ],
    ids=str,
)
def test_wrong_certificate(parameter: str, arguments: dict[str, object]) -> None:
    """A path that is not a string is rejected, and so is a key or password without a certificate. The error does not
    contain the password.
    """
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_certificate(**arguments)

    assert parameter == caught.value.parameter
    assert "secret" not in str(caught.value)


def test_the_password_of_a_key_is_never_shown() -> None:
    """The repr of a certificate has its paths but not the password of the key."""
    authenticator = CertificateAuthenticator("ada.pem", "ada.key", "secret")

    assert "CertificateAuthenticator(cert_path='ada.pem', key_path='ada.key')" == repr(authenticator)


@pytest.mark.parametrize("username", ["", None, b"ada", 5, ("ada",), "a\0da", "a\ud800da"])
def test_wrong_username(username: object) -> None:
    """A user name that is empty, or contains NUL or a lone surrogate, is rejected."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_authenticator(username, "secret")

    assert "username" == caught.value.parameter


@rows(
    "allowed",
    [
        (),
        "PLAIN",
        ["PLAIN"],
        {"PLAIN"},
        ("PLAIN", "EXTERNAL"),
        ("plain",),
        (b"PLAIN",),
        (["PLAIN"],),
        (None,),
        5,
        (name for name in ("PLAIN",)),
    ],
)
def test_wrong_mechanisms(allowed: object) -> None:
    """The mechanisms must be a tuple of implemented ones; a string or a generator is rejected."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_authenticator("ada", "secret", allowed)

    assert "allowed_sasl_mechanisms" == caught.value.parameter
    assert all(mechanism in str(caught.value) for mechanism in SASL_MECHANISMS)


@pytest.mark.parametrize(
    "count", [0, -1, SCRAM_ITERATIONS_MAX + 1, True, 4000.0, "4000", None, pytest.param(10**5000, id="5000 digits")]
)
def test_wrong_minimum_of_iterations(count: object) -> None:
    """A minimum of iterations is rejected if it is below 1, above a client's maximum, or not an integer."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_authenticator("ada", "secret", scram_iterations_min=count)

    assert "scram_iterations_min" == caught.value.parameter


@pytest.mark.parametrize("mechanism", SASL_MECHANISMS)
def test_every_mechanism_can_be_named(mechanism: str) -> None:
    """Each implemented mechanism is accepted in the tuple."""
    assert (mechanism,) == PasswordAuthenticator("ada", "", (mechanism,)).allowed_sasl_mechanisms


@rows("name", TIMEOUTS)
@rows(
    "value",
    [
        0,
        0.0,
        -1,
        -0.001,
        math.nan,
        -math.inf,
        True,
        False,
        None,
        "2.5",
        b"1",
        1j,
        10**400,
        1e18,
        [2.5],
        timedelta(0),
        timedelta.min,
    ],
)
def test_wrong_timeout(name: str, value: object) -> None:
    """A timeout is rejected if it is not a positive number of seconds, or is an integer that no float can hold."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_timeouts(**{name: value})

    assert name == caught.value.parameter
    assert name in str(caught.value)


@rows("name", TIMEOUTS)
@rows("value", [1, 0.001, 5e-324, 86_400.0, math.inf])
def test_right_timeout(name: str, value: float) -> None:
    """A timeout may be an integer; infinity means no limit."""
    assert value == getattr(make_timeouts(**{name: value}), name)


def test_durations_of_both_kinds() -> None:
    """All options treat a timedelta like its seconds."""
    quarter = timedelta(milliseconds=250)
    names = (*TIMEOUTS, "config_poll_interval", "config_poll_floor")

    assert TimeoutOptions(**dict.fromkeys(names, 0.25)) == TimeoutOptions(**dict.fromkeys(names, quarter))
    assert couchbase.CircuitBreakerOptions(
        sleep_window=0.25, rolling_window=0.25, canary_timeout=0.25
    ) == couchbase.CircuitBreakerOptions(sleep_window=quarter, rolling_window=quarter, canary_timeout=quarter)


@pytest.mark.parametrize(("interval", "floor"), [(2.5, 0.05), (0.05, 0.05), (math.inf, math.inf), (math.inf, 1.0)])
def test_polls(interval: float, floor: float) -> None:
    """The poll interval may be infinite, and may equal the minimum interval."""
    options = TimeoutOptions(config_poll_interval=interval, config_poll_floor=floor)

    assert (interval, floor) == (options.config_poll_interval, options.config_poll_floor)
    assert (2.5, 0.05) == (TimeoutOptions().config_poll_interval, TimeoutOptions().config_poll_floor)


@pytest.mark.parametrize(("interval", "floor"), [(0.01, 0.05), (2.5, 3.0), (1.0, math.inf)])
def test_polls_below_the_floor(interval: float, floor: float) -> None:
    """A poll interval below the minimum interval is rejected."""
    with pytest.raises(errors.InvalidArgumentException, match="config_poll_floor") as caught:
        TimeoutOptions(config_poll_interval=interval, config_poll_floor=floor)

    assert "config_poll_interval" == caught.value.parameter


@pytest.mark.parametrize(("name", "value"), [("config_poll_interval", 0), ("config_poll_floor", -1.0)])
def test_polls_without_time(name: str, value: float) -> None:
    """An interval for polls that is not positive is rejected."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        TimeoutOptions(**{name: value})

    assert name == caught.value.parameter


def test_timeouts_are_keyword_only() -> None:
    """Positional timeouts raise ``TypeError``."""
    with pytest.raises(TypeError):
        make_timeouts(2.5)


class NoStrategy:
    """Object whose ``retry_after`` attribute is not callable."""

    retry_after = 5


@rows(
    ("name", "value"),
    [
        ("connection_string", None),
        ("connection_string", b"couchbase://h"),
        ("authenticator", ("ada", "secret")),
        ("authenticator", "ada:secret"),
        ("timeouts", None),
        ("timeouts", 2.5),
        ("timeouts", {"kv": 2.5}),
        ("retry_strategy", None),
        ("retry_strategy", couchbase.BestEffortRetryStrategy),
        ("retry_strategy", NoStrategy()),
        ("retry_strategy", lambda request, reason: None),
        ("circuit_breaker", None),
        ("circuit_breaker", False),
        ("compression", None),
        ("compression", 1),
        ("compression", "snappy"),
        ("hello_after_auth", 0),
        ("renegotiate_on_corrupt_error_map", "no"),
        ("network", ""),
        ("network", None),
        ("enable_dns_srv", "yes"),
        ("dns_srv_domains", "nodes.example"),
        ("dns_srv_domains", None),
        ("dns_srv_domains", 5),
        ("dns_srv_domains", {"nodes.example"}),
        ("dns_srv_domains", (b"nodes.example",)),
        ("dns_srv_domains", ("",)),
        ("dns_srv_domains", (".",)),
        ("dns_srv_domains", ("*",)),
        ("dns_srv_domains", ("*.example",)),
        ("dns_srv_domains", (".nodes.example",)),
        ("dns_srv_domains", ("nodes..example",)),
        ("dns_srv_domains", ("nodes.example:11210",)),
        ("dns_srv_domains", ("nodes.example\n",)),
        ("dns_srv_domains", ("a" * 256,)),
        ("dns_srv_domains", (":",)),
        ("dns_srv_domains", ("1:2:3:4:5:6:7:8:9",)),
        ("tls_is_verified", None),
        ("user_agent", None),
        ("user_agent", b"mine/1.0"),
    ],
)
def test_wrong_option(name: str, value: object) -> None:
    """The constructor rejects an invalid option, before any connection is opened."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_options(**{"connection_string": CONNECTION_STRING, name: value})

    assert name == caught.value.parameter
    assert name in str(caught.value)


def test_wrong_authenticator_is_not_quoted() -> None:
    """A tuple in place of an authenticator raises an error that does not contain its password."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_options(connection_string=CONNECTION_STRING, authenticator=("ada", "secret"))

    assert "secret" not in str(caught.value)


def test_options_are_immutable() -> None:
    """Setting an option raises ``FrozenInstanceError``."""
    options = make_options(connection_string=CONNECTION_STRING)

    with pytest.raises(FrozenInstanceError):
        options.compression = False  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        options.timeouts.kv = 1.0  # type: ignore[misc]
