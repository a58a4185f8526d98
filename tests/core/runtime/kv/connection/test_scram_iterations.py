"""Salts and iteration counts: both sides reject invalid values, and the client also rejects too few iterations."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.runtime.kv.connection.scram_exchange import (
    ITERATIONS,
    NONCE,
    SALT,
    SALT_TEXT,
    client_after_final,
    client_after_first,
    exchange,
    make_client,
    make_server,
)
from triclinium_core.options import SCRAM_ITERATIONS_MIN
from triclinium_core.runtime.kv.connection import scram
from triclinium_core.runtime.kv.connection.scram import ITERATIONS_MAX

HOSTILE_COUNTS = [
    "0",
    "-1",
    "+1",
    "01",
    "1.0",
    "1e3",
    " 1",
    "1 ",
    "x",
    "\u0661",
    str(ITERATIONS_MAX + 1),
    "250000",
    "4294967297",
    "9" * 4000,
]


@pytest.fixture
def smallest_digit_limit() -> Iterator[None]:
    """Set the interpreter's limit on the digits of an integer to its smallest value during a test."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    yield
    sys.set_int_max_str_digits(limit)


@pytest.fixture
def salted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Replace hashlib's PBKDF2, and empty the servers' cache. Return a list that gets the arguments of each call."""
    worked: list[tuple[Any, ...]] = []

    def note(*arguments: Any) -> bytes:
        worked.append(arguments)
        return b"salted password"

    monkeypatch.setattr(scram, "SALTED_BY_SERVERS", scram.SaltedPasswords())
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", note, raising=False)
    return worked


class TestSaltAndIterations:
    @pytest.mark.parametrize("count", HOSTILE_COUNTS)
    def test_hostile_count(self, count: str, salted: list[tuple[Any, ...]], smallest_digit_limit: None) -> None:
        """The client rejects an invalid count, or one above the limit, before it computes an iteration."""
        with pytest.raises(
            scram.ScramError, match=f"must be a whole number from {SCRAM_ITERATIONS_MIN} to {ITERATIONS_MAX};"
        ):
            client_after_first().final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())
        assert [] == salted

    @pytest.mark.parametrize("iterations_min", [1, 3999, SCRAM_ITERATIONS_MIN, ITERATIONS_MAX])
    def test_too_few(self, iterations_min: int, salted: list[tuple[Any, ...]]) -> None:
        """If a count is below the minimum, the client computes nothing; the error names count, minimum and option."""
        client = make_client(iterations_min=iterations_min)
        client.first()

        with pytest.raises(scram.ScramError) as caught:
            client.final(f"r={NONCE},s={SALT_TEXT},i={iterations_min - 1}".encode())

        assert [] == salted
        named = {str(iterations_min), "scram_iterations_min"} if iterations_min > 1 else {"'0'"}
        assert all(name in str(caught.value) for name in {*named, str(iterations_min - 1)})

    @pytest.mark.parametrize("iterations_min", [1, SCRAM_ITERATIONS_MIN, 20_000])
    @pytest.mark.parametrize("count", ["0", str(ITERATIONS_MAX + 1), "9" * 4000])
    def test_no_advice_below_the_default(self, count: str, iterations_min: int) -> None:
        """If a count is out of range, the error recommends neither a count below 4,000 nor one below the minimum."""
        client = make_client(iterations_min=iterations_min)
        client.first()

        with pytest.raises(scram.ScramError) as caught:
            client.final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())

        advice = str(caught.value).partition(";")[2]
        numbers = [int(number) for number in re.findall(r"[0-9]+", advice)]
        assert [max(SCRAM_ITERATIONS_MIN, iterations_min), ITERATIONS_MAX] == numbers

    @pytest.mark.parametrize("count", [SCRAM_ITERATIONS_MIN, ITERATIONS_MAX])
    def test_smallest_and_largest_count(self, count: int, salted: list[tuple[Any, ...]]) -> None:
        """For the smallest and the largest count, the client computes all iterations with the server's salt."""
        client_after_first().final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())

        assert [("sha512", b"pencil", SALT, count)] == salted

    @pytest.mark.parametrize("count", [-1, 0, ITERATIONS_MAX + 1, pytest.param(10**5000, id="5000 digits")])
    def test_server_is_given_an_unusable_count(self, count: int) -> None:
        """A server rejects a count that no client accepts."""
        with pytest.raises(scram.ScramError, match=r"the iteration count .* must be a whole number"):
            make_server(iterations=count)

    def test_a_client_reuses_a_servers_salted_password(self, salted: list[tuple[Any, ...]]) -> None:
        """A client reuses the salted password of a server in its process, and adds none to the servers' cache."""
        client_after_final()
        client_after_final()
        exchange(make_client(), make_server())
        exchange(make_client(), make_server())

        assert [("sha512", b"pencil", SALT, ITERATIONS)] * 4 == salted

    def test_server_is_given_no_salt(self) -> None:
        """A server rejects an empty salt."""
        with pytest.raises(scram.ScramError, match="the salt is empty"):
            make_server(salt=b"")

    @pytest.mark.parametrize("salt", ["QQ", "QR==", "QQ==QQ==", "====", "Q", "Q Q=", "QQ=\n", "Q-__", "\u00e9\u00e9=="])
    def test_salt_that_is_not_base64(self, salt: str) -> None:
        """A salt in invalid or non-canonical base64 is rejected."""
        with pytest.raises(scram.ScramError, match="s= is not base64"):
            client_after_first().final(f"r={NONCE},s={salt},i={ITERATIONS}".encode())
