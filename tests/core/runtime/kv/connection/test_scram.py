"""SCRAM: the examples of the RFCs, a foreign peer in both directions, and everything that a hostile peer may send."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import example, given, strategies as st

from tests.rows import rows
from triclinium_core.options import SCRAM_ITERATIONS_MIN
from triclinium_core.runtime.kv.connection import scram
from triclinium_core.runtime.kv.connection.scram import ITERATIONS_MAX

USERNAME = "user"
PASSWORD = "pencil"
CLIENT_NONCE = "client-nonce"
SERVER_NONCE = "server-nonce"
NONCE = CLIENT_NONCE + SERVER_NONCE
SALT = b"a salt of bytes \x00\xff"
SALT_TEXT = b64encode(SALT).decode()
ITERATIONS = SCRAM_ITERATIONS_MIN
SERVER_FIRST = f"r={NONCE},s={SALT_TEXT},i={ITERATIONS}"

Tamper = Callable[[int, bytes], bytes]
all_mechanisms = pytest.mark.parametrize("mechanism", scram.MECHANISMS)


def make_client(
    mechanism: str = "SCRAM-SHA512",
    username: str = USERNAME,
    password: str = PASSWORD,
    *,
    nonce: str = CLIENT_NONCE,
    iterations_min: int = SCRAM_ITERATIONS_MIN,
) -> scram.ScramClient:
    """Return a client that has sent nothing."""
    return scram.ScramClient(mechanism, username, password, nonce=nonce, iterations_min=iterations_min)


def make_server(
    mechanism: str = "SCRAM-SHA512",
    username: str = USERNAME,
    password: str = PASSWORD,
    *,
    nonce: str = SERVER_NONCE,
    salt: bytes = SALT,
    iterations: int = ITERATIONS,
) -> scram.ScramServer:
    """Return a server that has heard nothing."""
    return scram.ScramServer(
        mechanism, username=username, password=password, nonce=nonce, salt=salt, iterations=iterations
    )


def untouched(_step: int, message: bytes) -> bytes:
    """Return the message as it is."""
    return message


def replacing(at_step: int, replacement: bytes) -> Tamper:
    """Return what puts another message in the place of the one of that step."""
    return lambda step, message: replacement if step == at_step else message


def appending(at_step: int, tail: bytes) -> Tamper:
    """Return what adds bytes to the message of that step."""
    return lambda step, message: message + tail if step == at_step else message


def exchange(client: scram.ScramClient, server: scram.ScramServer, tamper: Tamper = untouched) -> list[bytes]:
    """Let both sides talk until each is sure of the other; return the messages as they arrived."""
    messages = [tamper(0, client.first())]
    messages.append(tamper(1, server.first(messages[-1])))
    messages.append(tamper(2, client.final(messages[-1])))
    messages.append(tamper(3, server.final(messages[-1])))
    client.verify(messages[-1])
    return messages


def client_after_first() -> scram.ScramClient:
    """Return a client that waits for the server-first-message."""
    client = make_client()
    client.first()
    return client


def client_after_final() -> scram.ScramClient:
    """Return a client that waits for the server-final-message."""
    client = client_after_first()
    client.final(SERVER_FIRST.encode())
    return client


def server_after_first() -> scram.ScramServer:
    """Return a server that waits for the client-final-message."""
    server = make_server()
    server.first(make_client().first())
    return server


RECEIVE: dict[str, Callable[[bytes], object]] = {
    "client-first-message": lambda message: make_server().first(message),
    "server-first-message": lambda message: client_after_first().final(message),
    "client-final-message": lambda message: server_after_first().final(message),
    "server-final-message": lambda message: client_after_final().verify(message),
}
"""What receives a message of that name, in the state in which it is due."""


class RfcExample(NamedTuple):
    mechanism: str
    client_nonce: str
    server_nonce: str
    salt: bytes
    messages: tuple[bytes, bytes, bytes, bytes]


RFC_5802 = RfcExample(
    mechanism="SCRAM-SHA1",
    client_nonce="fyko+d2lbbFgONRv9qkxdawL",
    server_nonce="3rfcNHYJY1ZVvWVs7j",
    salt=bytes.fromhex("4125c247e43ab1e93c6dff76"),
    messages=(
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
)
RFC_7677 = RfcExample(
    mechanism="SCRAM-SHA256",
    client_nonce="rOprNGfwEbeRWgbNEkqO",
    server_nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    salt=bytes.fromhex("5b6d99689d12358eeca04b141236fa81"),
    messages=(
        b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
)
rfc_examples = pytest.mark.parametrize("rfc", [RFC_5802, RFC_7677], ids=["RFC 5802 section 5", "RFC 7677 section 3"])


class TestExamplesOfTheRfcs:
    @rfc_examples
    def test_client_says_what_the_example_says(self, rfc: RfcExample) -> None:
        """The client sends the two client messages of the RFC and accepts the server's signature."""
        client_first, server_first, client_final, server_final = rfc.messages
        client = make_client(rfc.mechanism, nonce=rfc.client_nonce)

        assert client_first == client.first()
        assert client_final == client.final(server_first)
        client.verify(server_final)

    @rfc_examples
    def test_server_says_what_the_example_says(self, rfc: RfcExample) -> None:
        """The server sends the two server messages of the RFC and accepts the client's proof."""
        client_first, server_first, client_final, server_final = rfc.messages
        server = make_server(rfc.mechanism, nonce=rfc.server_nonce, salt=rfc.salt, iterations=4096)

        assert server_first == server.first(client_first)
        assert server_final == server.final(client_final)


class TestMechanisms:
    @all_mechanisms
    @pytest.mark.parametrize("password", ["", PASSWORD, "longer than a block of the hash " * 8])
    @pytest.mark.parametrize("iterations", [1, 2, 100])
    def test_plain_hmac_agrees_with_pbkdf2(
        self, mechanism: str, password: str, iterations: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Iterated HMAC and hashlib's PBKDF2 give the same messages for each digest."""

        def talk() -> list[bytes]:
            monkeypatch.setattr(scram, "SALTED_BY_SERVERS", scram.SaltedPasswords())
            server = make_server(mechanism, password=password, iterations=iterations)
            return exchange(make_client(mechanism, password=password, iterations_min=1), server)

        with_pbkdf2 = talk()
        monkeypatch.delattr(hashlib, "pbkdf2_hmac", raising=False)

        assert with_pbkdf2 == talk()

    @pytest.mark.parametrize("mechanism", ["", "PLAIN", "SCRAM-SHA-512", "scram-sha512", "SCRAM-SHA512-PLUS"])
    def test_unknown_mechanism(self, mechanism: str) -> None:
        """A mechanism that is not ours is refused by both sides, with the names of ours."""
        for make in (make_client, make_server):
            with pytest.raises(scram.ScramError, match=r"unknown mechanism .*SCRAM-SHA512, SCRAM-SHA256, SCRAM-SHA1$"):
                make(mechanism)


IANA_NAMES = {"SCRAM-SHA512": "SCRAM-SHA-512", "SCRAM-SHA256": "SCRAM-SHA-256", "SCRAM-SHA1": "SCRAM-SHA-1"}
CREDENTIALS = [
    pytest.param("user", "pencil", id="plain"),
    pytest.param("a=b,c=2Cd", "pass,word=", id="escapes"),
    pytest.param("J\u00f6rg", "pa\u0308sswo\u0308rd \u2168 \u00aa\u00a0\u00ad!", id="SASLprep"),
    pytest.param("\u0627\u0628", "\u05d0\u05d11\u05d2", id="right-to-left"),
]
characters_that_matter = st.sampled_from("a1 \u00a0\u00ad\u00e9\u0308\u05d0\u0627\u0661\u200b\u2168\ufb01\x07")


@pytest.fixture
def scramp() -> ModuleType:
    """Return the foreign implementation, imported late: it needs modules that WebAssembly lacks."""
    return importlib.import_module("scramp")


@pytest.mark.native
class TestForeignPeer:
    @all_mechanisms
    @pytest.mark.parametrize(("username", "password"), CREDENTIALS)
    def test_our_client(self, mechanism: str, username: str, password: str, scramp: ModuleType) -> None:
        """Our client and the server of scramp convince each other."""
        foreign = scramp.ScramMechanism(IANA_NAMES[mechanism])
        account = foreign.make_auth_info(password, iteration_count=4096, salt=SALT)
        server = foreign.make_server({username: account}.get, s_nonce=SERVER_NONCE)
        client = make_client(mechanism, username, password)
        server.set_client_first(client.first().decode())
        server.set_client_final(client.final(server.get_server_first().encode()).decode())
        client.verify(server.get_server_final().encode())

        assert server.error is None

    @all_mechanisms
    @pytest.mark.parametrize(("username", "password"), CREDENTIALS)
    def test_our_server(self, mechanism: str, username: str, password: str, scramp: ModuleType) -> None:
        """The client of scramp and our server convince each other."""
        client = scramp.ScramClient([IANA_NAMES[mechanism]], username, password, c_nonce=CLIENT_NONCE)
        server = make_server(mechanism, username, password, iterations=4096)
        client.set_server_first(server.first(client.get_client_first().encode()).decode())
        server_final = server.final(client.get_client_final().encode())
        client.set_server_final(server_final.decode())

        assert server_final.startswith(b"v=")

    @all_mechanisms
    def test_our_client_with_a_wrong_password(self, mechanism: str, scramp: ModuleType) -> None:
        """Our proof with a wrong password is refused by scramp, and our client understands its refusal."""
        foreign = scramp.ScramMechanism(IANA_NAMES[mechanism])
        account = foreign.make_auth_info("another", iteration_count=4096, salt=SALT)
        server = foreign.make_server({USERNAME: account}.get, s_nonce=SERVER_NONCE)
        client = make_client(mechanism)
        server.set_client_first(client.first().decode())
        client_final = client.final(server.get_server_first().encode()).decode()

        with pytest.raises(scramp.ScramException):
            server.set_client_final(client_final)
        with pytest.raises(scram.ScramError, match="refused with 'invalid-proof'"):
            client.verify(server.get_server_final().encode())

    @all_mechanisms
    def test_our_server_with_a_wrong_password(self, mechanism: str, scramp: ModuleType) -> None:
        """The proof of scramp with a wrong password is refused by our server."""
        client = scramp.ScramClient([IANA_NAMES[mechanism]], USERNAME, "another", c_nonce=CLIENT_NONCE)
        server = make_server(mechanism, iterations=4096)
        client.set_server_first(server.first(client.get_client_first().encode()).decode())

        with pytest.raises(scram.ScramError, match="wrong password"):
            server.final(client.get_client_final().encode())

    @given(password=st.text(characters_that_matter | st.characters(codec="utf-8")))
    @example(password="\u05d0a\u05d0")
    @example(password="\u05d01")
    @example(password="\U0001f600")
    def test_saslprep_as_scramp_does(self, password: str) -> None:
        """SASLprep gives what scramp gives, and what scramp refuses goes in as it is."""
        foreign = importlib.import_module("scramp.utils")
        try:
            prepared = str(foreign.saslprep(password))
        except foreign.ScramException:
            prepared = password

        assert 4 == len(exchange(make_client(password=password), make_server(password=prepared)))


class TestCredentials:
    def test_wrong_user_is_not_told_from_a_wrong_password(self) -> None:
        """An unknown user with the right password gets a challenge and then the error of a wrong password."""
        server = make_server()
        client = make_client(username="stranger")
        server_first = server.first(client.first())

        assert SERVER_FIRST.encode() == server_first
        with pytest.raises(scram.ScramError, match="unknown user or wrong password"):
            server.final(client.final(server_first))

    def test_server_that_does_not_know_the_password(self) -> None:
        """A server that accepts any proof but signs with another password is not trusted."""
        messages = exchange(make_client(password="guess"), make_server(password="guess"))
        client = client_after_final()

        with pytest.raises(scram.ScramError, match="wrong server signature"):
            client.verify(messages[3])

    def test_proofs_are_compared_in_constant_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Proof and signature go through hmac.compare_digest, and its word is final."""
        proof, signature = exchange(make_client(), make_server())[2:]
        client, server = client_after_final(), server_after_first()
        compared: list[tuple[int, int]] = []

        def refuse(left: bytes, right: bytes) -> bool:
            compared.append((len(left), len(right)))
            return False

        monkeypatch.setattr(hmac, "compare_digest", refuse)
        with pytest.raises(scram.ScramError, match="wrong password"):
            server.final(proof)
        with pytest.raises(scram.ScramError, match="wrong server signature"):
            client.verify(signature)

        assert [(64, 64), (64, 64)] == compared

    @pytest.mark.parametrize("username", ["", "\u00ad"])
    def test_no_user_name(self, username: str) -> None:
        """A user name of which nothing is left is refused by both sides."""
        for make in (make_client, make_server):
            with pytest.raises(scram.ScramError, match="the user name is empty"):
                make(username=username)

    @pytest.mark.parametrize(
        ("username", "escaped"),
        [(",", "=2C"), ("=", "=3D"), ("=2C", "=3D2C"), ("=3D,", "=3D3D=2C"), ("a=b,c", "a=3Db=2Cc")],
    )
    def test_escapes_in_the_user_name(self, username: str, escaped: str) -> None:
        """Comma and equals sign of a user name travel escaped, and arrive as they were."""
        messages = exchange(make_client(username=username), make_server(username=username))

        assert f"n,,n={escaped},r={CLIENT_NONCE}".encode() == messages[0]

    @pytest.mark.parametrize("escaped", ["=", "a=", "=2", "=2c", "=3d", "==2C", "=2B", "a=b"])
    def test_malformed_escapes(self, escaped: str) -> None:
        """An equals sign that starts no known escape is refused."""
        with pytest.raises(scram.ScramError, match="only =2C and =3D"):
            make_server().first(f"n,,n={escaped},r=x".encode())

    def test_password_is_in_no_error(self) -> None:
        """An error about the password shows nothing of it, nor does what it was raised from."""
        with pytest.raises(scram.ScramError) as caught:
            make_client(password="pencil\x07\ud800")

        assert "pencil" not in str(caught.value)
        assert caught.value.__context__ is None


class TestSaslprep:
    @pytest.mark.parametrize(
        ("password", "same"),
        [
            pytest.param("I\u00adX", "IX", id="soft hyphen is dropped"),
            pytest.param("I\u200bX", "IX", id="zero width space is dropped"),
            pytest.param("a\u00a0b\u1680c", "a b c", id="other spaces become blanks"),
            pytest.param("\u00aa", "a", id="compatibility form"),
            pytest.param("\u2168", "IX", id="roman numeral"),
            pytest.param("e\u0301", "\u00e9", id="decomposed accent"),
            pytest.param("\u06271\ufb51", "\u06271\u0671", id="right-to-left around a digit"),
        ],
    )
    def test_all_spellings_are_one_password(self, password: str, same: str) -> None:
        """Two spellings of one password prove the same, in both directions."""
        expected = exchange(make_client(password=same), make_server(password=same))

        assert expected == exchange(make_client(password=password), make_server(password=same))
        assert expected == exchange(make_client(password=same), make_server(password=password))

    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("a\x07", id="C.2.1 control"),
            pytest.param("a\x7f", id="C.2.1 delete"),
            pytest.param("a\x85", id="C.2.2 control"),
            pytest.param("a\ue000", id="C.3 private use"),
            pytest.param("a\ufdd0", id="C.4 non-character"),
            pytest.param("a\ud800", id="C.5 surrogate"),
            pytest.param("a\ufffd", id="C.6 replacement character"),
            pytest.param("a\u2ff0", id="C.7 ideographic description"),
            pytest.param("a\u200e", id="C.8 direction mark"),
            pytest.param("a\U000e0001", id="C.9 tag"),
            pytest.param("\u06271", id="right-to-left text must end so"),
            pytest.param("1\u0627", id="right-to-left text must begin so"),
            pytest.param("\u0627a\u0627", id="left-to-right inside right-to-left"),
        ],
    )
    def test_prohibited(self, text: str) -> None:
        """What SASLprep prohibits is refused in a user name, by both sides."""
        for make in (make_client, make_server):
            with pytest.raises(scram.ScramError, match=r"^the user name .*prohibits"):
                make(username=text)
        with pytest.raises(scram.ScramError, match=r"^the user name .*prohibits|not UTF-8"):
            make_server().first(f"n,,n={text},r=x".encode(errors="surrogatepass"))

    def test_unassigned_code_points(self) -> None:
        """A character newer than Unicode 3.2 may stand in a user name (RFC 5802), which keeps its case."""
        assert "n,,n=\U0001f600A,r=client-nonce".encode() == make_client(username="\U0001f600A").first()

    @pytest.mark.parametrize("password", ["\U0001f600", "a\x07", "1\u0627"])
    def test_a_password_that_is_prohibited_goes_in_as_it_is(self, password: str) -> None:
        """A password that SASLprep does not take is hashed raw, as the server keeps it, and only itself fits."""
        assert 4 == len(exchange(make_client(password=password), make_server(password=password)))
        with pytest.raises(scram.ScramError, match="wrong password"):
            exchange(make_client(password=password), make_server(password="\U0001f601"))


class TestNonces:
    @rows("make", [make_client, make_server])
    def test_every_printable_character_but_the_comma(self, make: Callable[..., object]) -> None:
        """All of printable ASCII is a nonce, blanks among it, as the official client sends them; the comma is not."""
        accepted = set()
        for nonce in ["", *map(chr, range(0x100))]:
            try:
                make(nonce=nonce)
            except scram.ScramError:
                continue
            accepted.add(nonce)

        assert set(map(chr, range(0x20, 0x7F))) - {","} == accepted

    @pytest.mark.parametrize("nonce", [CLIENT_NONCE, SERVER_NONCE, CLIENT_NONCE[:-1], f"x{NONCE}", NONCE.upper()])
    def test_nonce_that_does_not_extend_ours(self, nonce: str) -> None:
        """A server that does not add to our nonce answers somebody else, or replays."""
        with pytest.raises(scram.ScramError, match="does not extend ours"):
            client_after_first().final(f"r={nonce},s={SALT_TEXT},i={ITERATIONS}".encode())


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
    """Let the interpreter refuse to read numbers as early as it can be told to."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    yield
    sys.set_int_max_str_digits(limit)


class TestSaltAndIterations:
    @pytest.mark.parametrize("count", HOSTILE_COUNTS)
    def test_hostile_count(self, count: str, monkeypatch: pytest.MonkeyPatch, smallest_digit_limit: None) -> None:
        """A count that is not a number up to the bound is refused before any iteration is computed."""
        worked: list[object] = []
        monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *arguments: worked.append(arguments), raising=False)

        with pytest.raises(
            scram.ScramError, match=f"must be a whole number from {SCRAM_ITERATIONS_MIN} to {ITERATIONS_MAX};"
        ):
            client_after_first().final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())
        assert [] == worked

    @pytest.mark.parametrize("iterations_min", [1, 3999, SCRAM_ITERATIONS_MIN, ITERATIONS_MAX])
    def test_too_few(self, iterations_min: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A count below the minimum is refused before any iteration; the error names count, minimum and option."""
        worked: list[object] = []
        monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *arguments: worked.append(arguments), raising=False)
        client = make_client(iterations_min=iterations_min)
        client.first()

        with pytest.raises(scram.ScramError) as caught:
            client.final(f"r={NONCE},s={SALT_TEXT},i={iterations_min - 1}".encode())

        assert [] == worked
        named = {str(iterations_min), "scram_iterations_min"} if iterations_min > 1 else {"'0'"}
        assert all(name in str(caught.value) for name in {*named, str(iterations_min - 1)})

    @pytest.mark.parametrize("iterations_min", [1, SCRAM_ITERATIONS_MIN, 20_000])
    @pytest.mark.parametrize("count", ["0", str(ITERATIONS_MAX + 1), "9" * 4000])
    def test_no_advice_below_the_default(self, count: str, iterations_min: int) -> None:
        """The error for a count out of range recommends no count below 4,000, nor below the minimum."""
        client = make_client(iterations_min=iterations_min)
        client.first()

        with pytest.raises(scram.ScramError) as caught:
            client.final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())

        advice = str(caught.value).partition(";")[2]
        numbers = [int(number) for number in re.findall(r"[0-9]+", advice)]
        assert [max(SCRAM_ITERATIONS_MIN, iterations_min), ITERATIONS_MAX] == numbers

    @pytest.mark.parametrize("count", [SCRAM_ITERATIONS_MIN, ITERATIONS_MAX])
    def test_smallest_and_largest_count(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """The smallest and the largest count are computed in full, with the salt as sent."""
        monkeypatch.setattr(scram, "SALTED_BY_SERVERS", scram.SaltedPasswords())
        worked: list[tuple[str, bytes, bytes, int]] = []

        def note(digest: str, password: bytes, salt: bytes, iterations: int) -> bytes:
            worked.append((digest, password, salt, iterations))
            return b"salted password"

        monkeypatch.setattr(hashlib, "pbkdf2_hmac", note, raising=False)
        client_after_first().final(f"r={NONCE},s={SALT_TEXT},i={count}".encode())

        assert [("sha512", b"pencil", SALT, count)] == worked

    @pytest.mark.parametrize("count", [-1, 0, ITERATIONS_MAX + 1, pytest.param(10**5000, id="5000 digits")])
    def test_server_is_given_an_unusable_count(self, count: int) -> None:
        """A server cannot be made with a count that no client would accept."""
        with pytest.raises(scram.ScramError, match=r"the iteration count .* must be a whole number"):
            make_server(iterations=count)

    def test_a_client_uses_what_a_server_has_salted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A client uses a password that a server of its process has salted, and does not add to the servers' cache."""
        monkeypatch.setattr(scram, "SALTED_BY_SERVERS", scram.SaltedPasswords())
        worked: list[int] = []

        def note(digest: str, password: bytes, salt: bytes, iterations: int) -> bytes:
            worked.append(len(password))
            return b"salted password"

        monkeypatch.setattr(hashlib, "pbkdf2_hmac", note, raising=False)
        client_after_final()
        client_after_final()
        exchange(make_client(), make_server())
        exchange(make_client(), make_server())

        assert [len(PASSWORD)] * 4 == worked

    def test_server_is_given_no_salt(self) -> None:
        """A server cannot be made without a salt."""
        with pytest.raises(scram.ScramError, match="the salt is empty"):
            make_server(salt=b"")

    @pytest.mark.parametrize("salt", ["QQ", "QR==", "QQ==QQ==", "====", "Q", "Q Q=", "QQ=\n", "Q-__", "\u00e9\u00e9=="])
    def test_salt_that_is_not_base64(self, salt: str) -> None:
        """A salt in broken base64, or in another spelling of the same bytes, is refused."""
        with pytest.raises(scram.ScramError, match="s= is not base64"):
            client_after_first().final(f"r={NONCE},s={salt},i={ITERATIONS}".encode())


# fmt: off
MALFORMED = {
    "client-first-message": [
        ("", "has no header like n,,"),
        ("n,", "has no header like n,,"),
        ("n,,", "'' is not an attribute"),
        (",,n=user,r=x", "the header must begin with n or y"),
        ("N,,n=user,r=x", "the header must begin with n or y"),
        ("p=tls-unique,,n=user,r=x", "channel binding is not supported"),
        ("n,a=admin,n=user,r=x", "'a=admin' asks for the rights of another user"),
        ("n,user,n=user,r=x", "asks for the rights of another user"),
        ("n,,r=x,n=user", "must begin with the attributes n=, r=, has 'r=, n='"),
        ("n,,n=user", "must begin with the attributes n=, r=, has 'n='"),
        ("n,,r=x", "must begin with the attributes n=, r=, has 'r='"),
        ("n,,n=user,r=x,r=y", "the attribute r= is there twice"),
        ("n,,n=user,r=a\tb", r"r= 'a b' must be printable ASCII"),
        ("n,,n=user,r=\u00e9", r"r= '\\xe9' must be printable ASCII"),
        ("n,,m=1,n=user,r=x", "mandatory extension 'm=1'"),
    ],
    "server-first-message": [
        ("", "'' is not an attribute"),
        (f"r={NONCE}", "must begin with the attributes r=, s=, i=, has 'r='"),
        (f"r={NONCE},i={ITERATIONS}", "must begin with the attributes r=, s=, i=, has 'r=, i='"),
        (f"r={NONCE},s={SALT_TEXT}", "must begin with the attributes r=, s=, i=, has 'r=, s='"),
        (f"s={SALT_TEXT},i={ITERATIONS}", "has 's=, i='"),
        (f"s={SALT_TEXT},r={NONCE},i={ITERATIONS}", "has 's=, r=, i='"),
        (f"R={NONCE},S={SALT_TEXT},I={ITERATIONS}", "has 'R=, S=, I='"),
        (f"x=1,{SERVER_FIRST}", "has 'x=, r=, s=, i='"),
        (f"{SERVER_FIRST},i={ITERATIONS}", "the attribute i= is there twice"),
        (f"{SERVER_FIRST},x=1,x=2", "the attribute x= is there twice"),
        (f"r={NONCE},s=,i={ITERATIONS}", "'s=' is not an attribute"),
        (f"r={NONCE}\u00e9,s={SALT_TEXT},i={ITERATIONS}", "must be printable ASCII"),
        (f"{SERVER_FIRST},", "'' is not an attribute"),
        (f"{SERVER_FIRST},x", "'x' is not an attribute"),
        (f"{SERVER_FIRST},xy=1", "'xy=1' is not an attribute"),
        (f"{SERVER_FIRST},1=1", "'1=1' is not an attribute"),
        (f"{SERVER_FIRST},\u00e9=1", "is not an attribute"),
        (f"{SERVER_FIRST},x=a\0b", "is not an attribute"),
        (f"m=1,{SERVER_FIRST}", "mandatory extension 'm=1'"),
        (f"{SERVER_FIRST},m=1", "mandatory extension 'm=1'"),
        ("e=other-error", "refused with 'other-error'"),
        ("e=two\nlines", r"refused with 'two lines'"),
        (f"e={'x' * 400}", "refused with 'x+[.]{3}'$"),
    ],
    "client-final-message": [
        ("", "'' is not an attribute"),
        (f"c=biws,r={NONCE}", "the last attribute must be the proof"),
        (f"c=biws,r={NONCE},p=QQ==,x=1", "the last attribute must be the proof"),
        (f"c=biws,r={NONCE},p=QQ==,p=QQ==", "the attribute p= is there twice"),
        (f"r={NONCE},p=QQ==", "must begin with the attributes c=, r="),
        ("c=biws,p=QQ==", "must begin with the attributes c=, r="),
        (f"c=eSws,r={NONCE},p=QQ==", "the channel binding is not the one"),
        (f"c=biw,r={NONCE},p=QQ==", "c= is not base64"),
        (f"c=biws,r={CLIENT_NONCE},p=QQ==", "the nonce is not the one of this exchange"),
        (f"c=biws,r={NONCE},p=Q", "p= is not base64"),
        (f"c=biws,r={NONCE},p=QQ==", "unknown user or wrong password"),
        (f"c=biws,r={NONCE},m=1,p=QQ==", "mandatory extension 'm=1'"),
    ],
    "server-final-message": [
        ("", "'' is not an attribute"),
        ("v=", "'v=' is not an attribute"),
        ("v=Q", "v= is not base64"),
        ("v=QQ==", "wrong server signature"),
        ("x=1", "must begin with the attributes v=, has 'x='"),
        ("e=invalid-proof", "refused with 'invalid-proof'"),
        ("e=invalid-proof,x=1", "refused with 'invalid-proof'"),
        ("e=invalid-proof,m=1,,\0", "refused with 'invalid-proof'"),
        ("v=QQ==,m=1,e=", "refused with ''"),
    ],
}
# fmt: on


class TestMalformed:
    @rows(("name", "message", "reason"), [(name, *case) for name, cases in MALFORMED.items() for case in cases])
    def test_message(self, name: str, message: str, reason: str) -> None:
        """A message that is not of the RFC's form is refused, with its name and the reason."""
        with pytest.raises(scram.ScramError, match=f"^{name}: .*{reason}"):
            RECEIVE[name](message.encode())

    @pytest.mark.parametrize("name", RECEIVE)
    def test_not_utf8(self, name: str) -> None:
        """Bytes that are not UTF-8 are refused with their place."""
        with pytest.raises(scram.ScramError, match=f"^{name}: not UTF-8 at byte 2$"):
            RECEIVE[name](b"r=\xff")

    @pytest.mark.parametrize("name", RECEIVE)
    def test_too_large(self, name: str) -> None:
        """A message above the largest size is not looked at."""
        with pytest.raises(scram.ScramError, match=f"^{name}: 4097 bytes are more than the 4096 allowed$"):
            RECEIVE[name](bytes(scram.MESSAGE_SIZE_MAX + 1))

    def test_largest(self) -> None:
        """A message of the largest size is read."""
        message = f"{SERVER_FIRST},x=".ljust(scram.MESSAGE_SIZE_MAX, "x").encode()

        assert client_after_first().final(message).startswith(b"c=biws,")


def proof_of(auth_message: str) -> str:
    """Return the client proof, written down once more from RFC 5802 section 3."""
    block = hmac.digest(PASSWORD.encode(), SALT + b"\0\0\0\1", "sha512")
    salted_password = block
    for _ in range(ITERATIONS - 1):
        block = hmac.digest(PASSWORD.encode(), block, "sha512")
        salted_password = bytes(a ^ b for a, b in zip(salted_password, block, strict=True))
    client_key = hmac.digest(salted_password, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), auth_message.encode(), "sha512")
    return b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()


class TestWhatTheRfcLetsAPeerAdd:
    @pytest.mark.parametrize("header", ["n,,", "y,,", "n,a=user,"])
    @pytest.mark.parametrize(("in_first", "in_final"), [("", ""), (",x=1", ",y=a=b,Z=\u00e9")])
    def test_to_the_client_messages(self, header: str, in_first: str, in_final: str) -> None:
        """A server takes the other headers when they come back in c=, and signs extensions unread."""
        bare = f"n=user,r={CLIENT_NONCE}{in_first}"
        server = make_server()
        server_first = server.first(f"{header}{bare}".encode()).decode()
        without_proof = f"c={b64encode(header.encode()).decode()},r={NONCE}{in_final}"
        proof = proof_of(f"{bare},{server_first},{without_proof}")

        assert server.final(f"{without_proof},p={proof}".encode()).startswith(b"v=")

    def test_to_the_server_first_message(self) -> None:
        """A client signs an extension of the server unread."""
        server_first = f"{SERVER_FIRST},x=a=b,Y=\u00e9"
        without_proof = f"c=biws,r={NONCE}"
        proof = proof_of(f"n=user,r={CLIENT_NONCE},{server_first},{without_proof}")

        assert f"{without_proof},p={proof}".encode() == client_after_first().final(server_first.encode())

    def test_to_the_server_final_message(self) -> None:
        """An extension behind a right signature is ignored, whatever else stands there is not."""
        messages = exchange(make_client(), make_server(), appending(3, b",x=1"))

        assert messages[3].endswith(b",x=1")
        for tail in (b",e=other-error", b",m=1", b",v=QQ==", b",x", b"\0", b","):
            with pytest.raises(scram.ScramError, match=r"^server-final-message: "):
                exchange(make_client(), make_server(), appending(3, tail))


class TestTurns:
    def test_first_comes_first(self) -> None:
        """A side that has not begun takes no other call, and is as good as new after the mistake."""
        client, server = make_client(), make_server()
        calls: list[Callable[[bytes], object]] = [client.final, client.verify, server.final]
        for call in calls:
            with pytest.raises(scram.ScramError, match=r"^(final|verify)\(\) called out of turn: first\(\) is due$"):
                call(b"v=QQ==")

        assert 4 == len(exchange(client, server))

    def test_call_out_of_turn_changes_nothing(self) -> None:
        """A wrong call in the middle leaves the exchange where it was."""
        client, server = client_after_first(), server_after_first()
        calls: list[Callable[[], object]] = [
            client.first,
            lambda: client.verify(b"v=QQ=="),
            lambda: server.first(b"n,,n=user,r=x"),
        ]
        for call in calls:
            with pytest.raises(scram.ScramError, match=r"called out of turn: final\(\) is due$"):
                call()

        client.verify(server.final(client.final(SERVER_FIRST.encode())))

    def test_nothing_happens_twice(self) -> None:
        """Each call of a completed exchange raises when it is made again."""
        client, server = make_client(), make_server()
        client_first, server_first, client_final, server_final = exchange(client, server)
        calls: list[Callable[[], object]] = [
            client.first,
            lambda: client.final(server_first),
            lambda: client.verify(server_final),
            lambda: server.first(client_first),
        ]
        for call in calls:
            with pytest.raises(scram.ScramError, match=r"called out of turn: the exchange is over, start a new one$"):
                call()
        with pytest.raises(scram.ScramError, match="called out of turn"):
            server.final(client_final)

    def test_failure_is_the_end(self) -> None:
        """After a message that was refused, the right one is refused too: there is no second guess."""
        messages = exchange(make_client(), make_server())
        receivers: list[Callable[[bytes], object]] = [
            make_server().first,
            client_after_first().final,
            server_after_first().final,
            client_after_final().verify,
        ]
        for receive, message in zip(receivers, messages, strict=True):
            with pytest.raises(scram.ScramError, match="-message: "):
                receive(b"x")
            with pytest.raises(scram.ScramError, match="the exchange is over, start a new one"):
                receive(message)


def garbled(original: bytes) -> Iterator[bytes]:
    """Yield the message with one byte changed, at every position: single bits, and what delimits."""
    for position, byte in enumerate(original):
        for other in {*b",=", *(byte ^ mask for mask in (0x01, 0x80))} - {byte}:
            yield original[:position] + bytes([other]) + original[position + 1 :]


def with_a_byte_more(original: bytes) -> Iterator[bytes]:
    """Yield the message with a byte slipped in, at every position."""
    for position in range(len(original) + 1):
        for byte in (b",", b"=", b"y"):
            yield original[:position] + byte + original[position:]


def truncated(original: bytes) -> Iterator[bytes]:
    """Yield every part of the message that begins at its beginning or ends at its end."""
    for position in range(1, len(original)):
        yield original[:position]
        yield original[position:]
    yield b""


def with_parts_missing_or_twice(original: bytes) -> Iterator[bytes]:
    """Yield the message with one part between commas left out, and repeated at every place."""
    parts = original.split(b",")
    for index, part in enumerate(parts):
        yield b",".join(parts[:index] + parts[index + 1 :])
        for place in range(len(parts) + 1):
            yield b",".join([*parts[:place], part, *parts[place:]])


def is_refused(tamper: Tamper) -> bool:
    """Tell whether either side stops an exchange that is tampered with."""
    try:
        exchange(make_client(), make_server(), tamper)
    except scram.ScramError:
        return True
    return False


class TestTampering:
    @rows("step", range(4))
    @rows("variants_of", [garbled, with_a_byte_more, truncated, with_parts_missing_or_twice])
    def test_nothing_goes_unnoticed(self, step: int, variants_of: Callable[[bytes], Iterator[bytes]]) -> None:
        """No message can be changed at any position without one of the sides stopping the exchange."""
        original = exchange(make_client(), make_server())[step]
        variants = set(variants_of(original)) - {original}

        assert len(variants) >= len(original.split(b","))
        assert [] == [variant for variant in variants if not is_refused(replacing(step, variant))]


values = st.text(max_size=12) | st.sampled_from(
    [USERNAME, CLIENT_NONCE, NONCE, SALT_TEXT, "1", "0", "99999999999", "biws", "QQ==", "=2C", "=", "a=admin"]
)
attributes = values | st.builds("{}={}".format, st.sampled_from("nrsicpvemaxX"), values)
messages_of_attributes = st.builds(
    lambda header, parts: (header + ",".join(parts)).encode(),
    st.sampled_from(["", "n,,", "y,,", "n,a=user,", "p=x,,"]),
    st.lists(attributes, max_size=6),
)
arbitrary_messages = st.binary() | messages_of_attributes


class TestArbitraryInput:
    @pytest.mark.parametrize("name", RECEIVE)
    @given(message=arbitrary_messages)
    def test_for_a_message(self, name: str, message: bytes) -> None:
        """Whatever begins an exchange is answered or refused, in one line without the password; no proof is right."""
        try:
            RECEIVE[name](message)
            text = ""
        except scram.ScramError as error:
            text = str(error)

        assert text.isascii()
        assert "\n" not in text
        assert PASSWORD not in text
        assert text or "first" in name

    @given(username=st.text(), password=st.text(), nonce=st.text(st.characters(max_codepoint=0x7F)))
    def test_for_credentials(self, username: str, password: str, nonce: str) -> None:
        """Any credentials and nonce are refused when given, or carry an exchange to its end."""
        try:
            client = make_client("SCRAM-SHA1", username, password, nonce=nonce)
        except scram.ScramError:
            return

        assert 4 == len(exchange(client, make_server("SCRAM-SHA1", username, password)))
