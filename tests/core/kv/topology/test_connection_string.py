"""Connection strings: the examples of SDK-RFC 0011, deviations from it, options, and hostile strings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.environment import PREFIX, VARIABLES
from triclinium_core.kv.address import Address
from triclinium_core.kv.topology import connection_string
from triclinium_core.kv.topology.string_options import OPTIONS
from triclinium_core.options import ClientOptions, TimeoutOptions


def refused(text: object) -> errors.InvalidArgumentException:
    """Check that a string is rejected as a connection string, and return the error."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        connection_string.parse_connection_string(text)
    assert "connection_string" == caught.value.parameter
    return caught.value


@rows(
    ("text", "addresses"),
    [
        # Valid examples from the RFC.
        ("couchbase://10.0.0.1", [("10.0.0.1", 11210)]),
        (
            "couchbases://10.0.0.1:11222,10.0.0.2,10.0.0.3:11207",
            [("10.0.0.1", 11222), ("10.0.0.2", 11207), ("10.0.0.3", 11207)],
        ),
        (
            "couchbase://10.0.0.1;10.0.0.2:11210;10.0.0.3",
            [("10.0.0.1", 11210), ("10.0.0.2", 11210), ("10.0.0.3", 11210)],
        ),
        ("couchbase://[3ffe:2a00:100:7031::1]", [("3ffe:2a00:100:7031::1", 11210)]),
        (
            "couchbases://[::ffff.192.168.0.1]:11207,[::ffff.192.168.0.2]:11207",
            [("::ffff:192.168.0.1", 11207), ("::ffff:192.168.0.2", 11207)],
        ),
        ("couchbases://fqdn", [("fqdn", 11207)]),
        ("couchbases://example.org/", [("example.org", 11207)]),
        # Case, spaces, empty options, memcached, ports, and other hosts.
        ("COUCHBASE://h", [("h", 11210)]),
        ("Couchbases://h", [("h", 11207)]),
        ("memcached://h", [("h", 11211)]),
        ("memcached://h:1", [("h", 1)]),
        ("  couchbase://h  ", [("h", 11210)]),
        ("couchbase:// h ", [("h", 11210)]),
        ("couchbase://h:65535/?", [("h", 65535)]),
        ("couchbase://h:00080", [("h", 80)]),
        ("couchbase://[fe80::1%eth0]:5", [("fe80::1%eth0", 5)]),
        *(
            (f"couchbase://{host}", [(host.strip("[]"), 11210)])
            for host in (
                *("my_host-1.example.org.", "bücher.example", "[::]", "[1:2:3:4:5:6:7:8]", "[2001:DB8::13.15.49.232]"),
                *("127.1", "2130706433", "10.0.0.1.", "10.0.0.1.example"),
            )
        ),
    ],
)
def test_valid_strings(text: str, addresses: list[tuple[str, int]]) -> None:
    """The parser ignores the scheme's case, spaces, a trailing slash and empty options; an IPv4-mapped address in the
    RFC's form equals the usual form.
    """
    scheme = connection_string.Scheme(text.strip().partition(":")[0].lower())
    expected = connection_string.ConnectionString(scheme, tuple(Address(*address) for address in addresses))

    assert expected == connection_string.parse_connection_string(text)


@pytest.mark.parametrize(
    "text", ["http://host1,http://host2", "https://host2:8091,host3:8091", "http://::ffff:00ee:2122"]
)
def test_invalid_examples_of_the_rfc(text: str) -> None:
    """The parser rejects the examples that the RFC marks as invalid."""
    refused(text)


def test_unknown_option() -> None:
    """An unknown option raises an error that lists the valid options; in this the parser deviates from the RFC."""
    error = refused("couchbase://test.local:11210?key=value")

    assert "'key'" in str(error)
    assert all(name in str(error) for name in OPTIONS)


def test_tls_goes_by_the_scheme() -> None:
    """As the RFC requires, only the scheme couchbases uses TLS."""
    assert ["couchbases"] == [
        scheme for scheme in connection_string.Scheme if connection_string.parse_connection_string(f"{scheme}://h").tls
    ]


@rows(
    ("text", "hint"),
    [
        ("", "no scheme; write couchbase://127.0.0.1"),
        (":", "no scheme; write couchbase://127.0.0.1"),
        ("couchbase", "no scheme"),
        ("couchbase:", "no host; write couchbase://127.0.0.1"),
        ("Couchbases::/", "no host; write couchbases://127.0.0.1"),
        ("couchbase:/h", "lacks '://'; write couchbase://h"),
        ("://h", "scheme ''"),
        ("couchbase ://h", "scheme 'couchbase '"),
        ("ftp://h", "scheme 'ftp'"),
        # The RFC also permits http://, which is its default scheme; the parser rejects it.
        ("http://fqdn", "couchbase, couchbases, memcached"),
        ("10.0.0.1:8091", "write couchbase://10.0.0.1:8091"),
        ("couchbase://a:0", "port 0"),
        ("couchbase://a:65536", "port 65536"),
        ("couchbase://a:" + "9" * 5000, "1 to 65535"),
        ("couchbase://::1", "brackets"),
        ("couchbase://fe80::1:11210", "brackets"),
        ("couchbase://[::1", "brackets"),
        ("couchbase://a/travel", "remove '/travel' after the hosts; cluster.bucket(name)"),
        ("couchbase://a,b:1/travel?kv_timeout=1s", "remove '/travel'"),
        ("couchbases://[::1]/a/b", "remove '/a/b'"),
        ("couchbase://a//", "remove '//'"),
        ("memcached://a/x", "remove '/x' after the hosts"),
        ("couchbase://a/" + "x" * 5000, "remove '/xxx"),
        ("couchbase://a:8091=http", "remove ':8091=http' from 'a:8091=http'"),
        ("couchbase://a,b:8091=HTTP", "remove ':8091=HTTP' from 'b:8091=HTTP'"),
        ("couchbase://a=http", "remove '=http'"),
        ("couchbase://a=kv", "remove '=kv'"),
        ("couchbases://a:11207=kv", "remove '=kv' from 'a:11207=kv'; each host is a key-value node, at port 11207"),
        ("couchbase://[::1]:11210=mcd/travel", "remove '=mcd' from '[::1]:11210=mcd'"),
        ("couchbase://a=" + "x" * 5000, "remove '=xxx"),
        *(
            (f"couchbase://{text}", "host:port")
            for text in (
                *("", "/", "?kv_timeout=1s", "a,", "a,,b", ",a", "a b", "a:", ":11210", "a:b", "a:-1"),
                *("a:+1", "a:\uff11", "[]", "[::1]x", "[::1]:x", "a#b", "a\0b", "a\nb", "a\ud800"),
                *("couchbase://a", 'a"b'),
            )
        ),
        *(
            (f"couchbase://{text}", "is not an IPv6 address")
            for text in (
                *("[zz]", "[1]", "[:]", "[:::]", "[::1::2]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[12345::]"),
                *(
                    "[:13.15.49.232]",
                    "[::1.2.3]",
                    "[::1.2.3.256]",
                    "[10.0.0.1]",
                    "[localhost]",
                    "[fe80::1%]",
                    "[zz]:11210",
                ),
                *("a,[zz]", "[" + "1:" * 2000 + "1]", "[::ffff.1.2.3]"),
            )
        ),
        *(
            (f"couchbase://{text}", "is not an IPv4 address")
            for text in ("256.0.0.1", "10.0.0.256", "1.2.3.4.5", "a,1.2.65536", "4294967296", "9" * 5000)
        ),
        ("couchbase://user:secret@a", "'@a'"),
        ("memcached://a,b", "one host"),
        ("memcached://a;b", "one host"),
    ],
)
def test_malformed(text: str, hint: str) -> None:
    """An invalid string raises an error with advice; a long string is quoted only in part."""
    error = refused(text)

    assert hint in str(error)
    assert 250 > len(str(error))


@pytest.mark.parametrize("separator", [",", ";", "/", "?", ":", "@", "&", "=", "://"])
def test_password_in_front_of_the_hosts(separator: str) -> None:
    """If the string contains a password, the error does not, whatever separator follows the password."""
    error = refused(f"couchbase://user:hush{separator}hush@a,b")

    assert "hush" not in str(error)
    assert "a,b" in str(error)


@pytest.mark.parametrize("value", [None, 5, b"couchbase://h", ["couchbase://h"], object()])
def test_no_string(value: object) -> None:
    """An object that is not a string raises an error that names its type."""
    assert type(value).__name__ in str(refused(value))


def test_too_long() -> None:
    """A string above the maximum length is rejected."""
    longest = "couchbase://" + "h" * (connection_string.CONNECTION_STRING_SIZE_MAX - 12)

    assert connection_string.Scheme.COUCHBASE == connection_string.parse_connection_string(longest).scheme
    assert f"{connection_string.CONNECTION_STRING_SIZE_MAX + 1} characters" in str(refused(longest + "h"))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("kv_timeout=1s", TimeoutOptions(kv=1.0)),
        ("kv_timeout=2.5s", TimeoutOptions(kv=2.5)),
        ("kv_timeout=700ms&connect_timeout=3s", TimeoutOptions(kv=0.7, connect=3.0)),
        ("kv_timeout=1m30s", TimeoutOptions(kv=90.0)),
        ("kv_timeout=1h2m3.s4ms5us.6us7ns", TimeoutOptions(kv=3723.004005607)),
        ("kv_timeout=1500us", TimeoutOptions(kv=0.0015)),
        ("kv_timeout=1500%C2%B5s", TimeoutOptions(kv=0.0015)),
        ("kv_timeout=1500\N{GREEK SMALL LETTER MU}s", TimeoutOptions(kv=0.0015)),
        ("kv_durable_timeout=010s", TimeoutOptions(kv_durable=10.0)),
        ("kv_scan_timeout=60s", TimeoutOptions(kv_scan=60.0)),
        ("query_timeout=1m&keep_alive_interval=30s", TimeoutOptions(query=60.0, keep_alive_interval=30.0)),
        ("keep_alive_timeout=1s&idle_http_connection_timeout=4s", TimeoutOptions(keep_alive=1, idle_http_connection=4)),
        ("kv_timeout=inf", TimeoutOptions(kv=math.inf)),
        ("kv%5Ftimeout=%31s", TimeoutOptions(kv=1.0)),
        ("", TimeoutOptions()),
    ],
)
def test_timeouts(query: str, expected: TimeoutOptions) -> None:
    """A timeout in the string is a duration with a unit, or inf, and overrides the program's timeout."""
    parsed = connection_string.parse_connection_string(f"couchbase://h?{query}")

    assert expected == parsed.timeouts(TimeoutOptions())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("network=external", {"network": "external"}),
        ("enable_dns_srv=false", {"enable_dns_srv": False}),
        ("enable_dns_srv=true&network=a%20b", {"network": "a b"}),
        ("dns_srv_domains=nodes.example", {"dns_srv_domains": ("nodes.example",)}),
        ("dns_srv_domains=nodes.example.,other_1.example", {"dns_srv_domains": ("nodes.example.", "other_1.example")}),
        (
            "config_poll_interval=5s&config_poll_floor=1s",
            {"timeouts": TimeoutOptions(config_poll_interval=5.0, config_poll_floor=1.0)},
        ),
        ("kv_timeout=1s", {"timeouts": TimeoutOptions(kv=1.0)}),
        ("", {}),
    ],
)
def test_other_options(query: str, expected: Mapping[str, Any]) -> None:
    """An option in the string overrides the program's option, and leaves all other options unchanged."""
    given = ClientOptions(connection_string="couchbase://h", compression=False)
    over = connection_string.parse_connection_string(f"couchbase://h?{query}").over(given)

    assert replace(given, **expected) == over


def test_every_timeout_has_an_option() -> None:
    """Each timeout has an option, whose name is that of its environment variable in lower case without the prefix."""
    variables = {each.field: name for name, each in VARIABLES.items() if each.group is TimeoutOptions}
    parsed = {
        field: connection_string.parse_connection_string(f"couchbase://h?{name.removeprefix(PREFIX).lower()}=1s")
        for field, name in variables.items()
    }

    assert {each.name for each in fields(TimeoutOptions)} == set(variables)
    for field, string in parsed.items():
        assert replace(TimeoutOptions(), **{field: 1.0}) == string.timeouts(TimeoutOptions()), field


def test_options_that_contradict_each_other() -> None:
    """If an option in the string contradicts an option of the program, the error names both."""
    given = ClientOptions(connection_string="couchbase://h", timeouts=TimeoutOptions(config_poll_floor=1.0))
    with pytest.raises(errors.InvalidArgumentException) as caught:
        connection_string.parse_connection_string("couchbase://h?config_poll_interval=500ms").over(given)

    assert "config_poll_interval" == caught.value.parameter
    assert "config_poll_floor=1.0" in str(caught.value)


@rows(
    ("text", "service"),
    [
        ("couchbase://cluster.example", "_couchbase._tcp.cluster.example"),
        ("couchbases://cluster.example", "_couchbases._tcp.cluster.example"),
        ("couchbase://cluster.example./?kv_timeout=1s", "_couchbase._tcp.cluster.example."),
        ("couchbase://cluster", "_couchbase._tcp.cluster"),
        ("couchbase://7.cluster7", "_couchbase._tcp.7.cluster7"),
        ("couchbase://cluster.example:11210", None),
        ("couchbase://a.example,b.example", None),
        ("couchbase://10.0.0.1", None),
        ("couchbase://127.1", None),
        ("couchbase://[::1]", None),
        ("couchbase://10.0.0.1.", None),
        ("couchbase://localhost", None),
        ("couchbase://node.LocalHost.", None),
        ("memcached://cluster.example", None),
    ],
)
def test_name_of_the_service(text: str, service: str | None) -> None:
    """DNS is queried only for a string with a single host name and no port, not for an address or a local name."""
    assert service == connection_string.parse_connection_string(text).service


@rows(
    ("query", "hint"),
    [
        ("kv_timeout", "name=value"),
        ("kv_timeout=1s&", "name=value"),
        ("&", "name=value"),
        ("=1", "option ''"),
        ("kv_timeout=", "kv_timeout="),
        ("kv_timeout=10000", "write 10000ms or 10000s"),
        ("kv_timeout=0.5", "milliseconds"),
        ("kv_timeout=0", "milliseconds"),
        *(
            (f"kv_timeout={text}", "a duration > 0")
            for text in (
                *("abc", "s", ".s", "1e3s", "-1s", "+1s", "1 s", "1S", "1d", "1s2", "0s", "0h0ms", "nan", "Inf"),
                *("1000000000000h", "9" * 400 + "h", "9" * 5000 + "h", "\N{ARABIC-INDIC DIGIT ONE}s"),
            )
        ),
        ("kv_timeout=1s&kv_timeout=2s", "twice"),
        ("network=", "name of a network"),
        ("enable_dns_srv=yes", "true or false"),
        ("enable_dns_srv=", "true or false"),
        ("dns_srv_domains=", "domain names"),
        ("dns_srv_domains=a.example,", "domain names"),
        ("dns_srv_domains=*.example", "domain names"),
        ("dns_srv_domains=.example", "domain names"),
        ("config_poll_interval=0s", "duration > 0"),
        ("config_poll_floor=x", "duration > 0"),
        ("kv_timeout=1s?kv_timeout=2s", "duration > 0"),
        ("KV_TIMEOUT=1s", "'KV_TIMEOUT'"),
        ("query_timeout=75", "write 75ms or 75s"),
        ("circuit_breaker_enabled=false", "'circuit_breaker_enabled'"),
        ("kv_timeout=1s&" + "x=1&" * 200 + "x=1", "name=value"),
    ],
)
def test_wrong_options(query: str, hint: str) -> None:
    """An invalid option raises an error and is not ignored."""
    assert hint in str(refused(f"couchbase://h?{query}"))


PIECES = (
    *("couchbase", "couchbases", "memcached", "http", "://", "h", "10.0.0.1", "::1"),
    *":[],;/?&=@%",
    "%zz",
    *(["kv_timeout", "network", "connect_timeout", "1", "65536", "inf"]),
    *("\ud800", "\0", " "),
)
hostile_texts = st.text() | st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(hostile_texts | hostile_texts.map("couchbase://{}".format))
def test_hostile_texts(text: str) -> None:
    """Arbitrary strings yield usable parts or InvalidArgumentException."""
    try:
        parsed = connection_string.parse_connection_string(text)
    except errors.InvalidArgumentException as error:
        assert "connection_string" == error.parameter
        return

    assert () != parsed.addresses
    for address in parsed.addresses:
        assert ":" not in address.host or ip_address(address.host).version == 6
        assert 1 <= address.port <= 65535
        assert address.host.encode()
        assert not set(address.host) & set(' \0\n"\\/?#@,;[]')
    assert parsed.timeouts(TimeoutOptions()).kv > 0
