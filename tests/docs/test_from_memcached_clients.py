"""The page for users of aiomcache and pymemcache covers both, and names nothing that triclinium lacks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import aiomcache
import aiomcache.exceptions
import pymemcache
import pymemcache.exceptions
import pytest
from pymemcache import serde
from pymemcache.client.retrying import RetryingClient

import triclinium
from docs.howto.examples.from_memcached_clients import BYTES, INTEGER, SHARED, TEXT
from tests.docs.pages import DOCS, code_of, rows_of
from tests.public_names import PUBLIC
from tests.rows import rows
from triclinium.errors import DecodingFailureException, EncodingFailureException

pytestmark = pytest.mark.native

ROWS = [row for row in rows_of(DOCS / "howto" / "from_memcached_clients.md") if len(row) == 2]
THERE = set(re.findall(r"\w+", " ".join(code_of(*(row[0] for row in ROWS)))))
HERE = " ".join(row[1] for row in ROWS)

METHODS_OF = [
    kind for name in ("Collection", "BinaryCollection") for kind in PUBLIC[name].__mro__ if kind is not object
]
CLIENTS = (aiomcache.Client, aiomcache.FlagClient, pymemcache.Client, pymemcache.PooledClient, pymemcache.HashClient)


@rows("kind", CLIENTS)
def test_every_method_has_a_row(kind: type) -> None:
    """Every public method of a client has a row."""
    assert set() == {name for name in dir(kind) if not name.startswith("_")} - THERE


@rows("kind", [*CLIENTS, RetryingClient])
def test_every_argument_has_a_row(kind: type) -> None:
    """Every argument with which a client is created has a row."""
    assert set() == set(inspect.signature(kind).parameters) - THERE


@rows("module", [aiomcache.exceptions, pymemcache.exceptions])
def test_every_exception_has_a_row(module: object) -> None:
    """Every exception of a client has a row."""
    raised = {name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, Exception)}

    assert len(raised) > 1
    assert set() == raised - THERE


def test_names_in_the_table_exist() -> None:
    """Every method, exception and function of triclinium in the right column exists."""
    methods = re.findall(r"`([A-Z]\w+)\.(\w+)", HERE)
    exceptions = re.findall(r"`(\w+Exception)`", HERE)
    functions = re.findall(r"`triclinium\.(\w+)`", HERE)

    assert [] == [name for owner, name in methods if not callable(getattr(PUBLIC[owner], name))]
    assert [] == [name for name in exceptions if not hasattr(triclinium.errors, name)]
    assert [] == [name for name in functions if not callable(getattr(triclinium, name))]
    assert min(len(methods), len(exceptions), len(functions)) > 0


@rows("name", sorted(set(re.findall(r"\b(\w+)=", HERE))))
def test_arguments_in_the_table_exist(name: str) -> None:
    """Every argument in the right column is one of ``open_cluster``, ``TimeoutOptions`` or a method of collections."""
    methods = [value for kind in METHODS_OF for value in vars(kind).values() if inspect.isfunction(value)]
    called: list[Callable[..., object]] = [triclinium.open_cluster, triclinium.TimeoutOptions, *methods]

    assert name in {argument for function in called for argument in inspect.signature(function).parameters}


@rows(("value", "flags"), [(b"\x00\xff", BYTES), ("Ada é", TEXT), (-7, INTEGER), ("", TEXT), (b"", BYTES)])
def test_values_are_those_of_pymemcache(value: object, flags: int) -> None:
    """The page's transcoder stores a value with the bytes and flags of pymemcache, and reads what pymemcache stores."""
    data, their_flags = serde.pickle_serde.serialize("key", value)
    stored = data if isinstance(data, bytes) else data.encode()
    ours = SHARED.encode(value)

    assert flags == their_flags
    assert (stored, flags) == (ours.data, ours.flags)
    assert value == SHARED.decode(stored, flags, object)


def test_other_values_are_refused() -> None:
    """The page's transcoder refuses pickled values, flags of other writers, and values of other types."""
    data, flags = serde.pickle_serde.serialize("key", [1])
    for read in [(data, flags), (b"1", 0x02000000), (b"x", INTEGER), (b"\xff", TEXT)]:
        with pytest.raises(DecodingFailureException):
            SHARED.decode(*read, object)
    for value in ([1], True, None):
        with pytest.raises(EncodingFailureException):
            SHARED.encode(value)
    with pytest.raises(DecodingFailureException, match="str, not bytes"):
        SHARED.decode(b"text", TEXT, bytes)
