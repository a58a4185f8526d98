"""SCRAM: examples of the RFCs, exchanges with the package scramp on either side, credentials, SASLprep and nonces."""

from __future__ import annotations

import hashlib
import hmac
import importlib
from base64 import b64decode
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import example, given, strategies as st

from tests.core.runtime.kv.connection.scram_exchange import (
    CLIENT_NONCE,
    ITERATIONS,
    NONCE,
    PASSWORD,
    SALT,
    SALT_TEXT,
    SERVER_FIRST,
    SERVER_NONCE,
    USERNAME,
    client_after_final,
    client_after_first,
    exchange,
    make_client,
    make_server,
    server_after_first,
)
from tests.rows import rows
from triclinium_core.runtime.kv.connection import scram

all_mechanisms = pytest.mark.parametrize("mechanism", scram.MECHANISMS)


RFC_5802 = (
    "SCRAM-SHA1",
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
RFC_7677 = (
    "SCRAM-SHA256",
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)


@pytest.mark.parametrize("rfc", [RFC_5802, RFC_7677], ids=["RFC 5802 section 5", "RFC 7677 section 3"])
def test_messages_of_the_rfcs(rfc: tuple[str, bytes, bytes, bytes, bytes]) -> None:
    """Client and server send the messages of the RFC's example, and each accepts the other's proof in it."""
    mechanism, client_first, server_first, client_final, server_final = rfc
    client_nonce = client_first.partition(b",r=")[2].decode()
    nonce, salt, _ = (attribute[2:] for attribute in server_first.split(b","))
    client = make_client(mechanism, nonce=client_nonce)
    server = make_server(
        mechanism, nonce=nonce.decode().removeprefix(client_nonce), salt=b64decode(salt), iterations=4096
    )

    assert (client_first, client_final) == (client.first(), client.final(server_first))
    assert (server_first, server_final) == (server.first(client_first), server.final(client_final))
    client.verify(server_final)


class TestMechanisms:
    @all_mechanisms
    @pytest.mark.parametrize("password", ["", PASSWORD, "longer than a block of the hash " * 8])
    @pytest.mark.parametrize("iterations", [1, 2, 100])
    def test_plain_hmac_agrees_with_pbkdf2(
        self, mechanism: str, password: str, iterations: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without hashlib's PBKDF2, iterated HMAC yields the same messages for each digest."""

        def talk() -> list[bytes]:
            monkeypatch.setattr(scram, "SALTED_BY_SERVERS", scram.SaltedPasswords())
            server = make_server(mechanism, password=password, iterations=iterations)
            return exchange(make_client(mechanism, password=password, iterations_min=1), server)

        with_pbkdf2 = talk()
        monkeypatch.delattr(hashlib, "pbkdf2_hmac", raising=False)

        assert with_pbkdf2 == talk()

    @pytest.mark.parametrize("mechanism", ["", "PLAIN", "SCRAM-SHA-512", "scram-sha512", "SCRAM-SHA512-PLUS"])
    def test_unknown_mechanism(self, mechanism: str) -> None:
        """Both sides reject an unknown mechanism with an error that lists the supported ones."""
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
    """Return scramp, which is imported late because it needs modules that WebAssembly lacks."""
    return importlib.import_module("scramp")


@pytest.mark.native
class TestForeignPeer:
    @all_mechanisms
    @pytest.mark.parametrize(("username", "password"), CREDENTIALS)
    def test_our_client(self, mechanism: str, username: str, password: str, scramp: ModuleType) -> None:
        """The core's client and scramp's server authenticate each other."""
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
        """The client of scramp and the core's server authenticate each other."""
        client = scramp.ScramClient([IANA_NAMES[mechanism]], username, password, c_nonce=CLIENT_NONCE)
        server = make_server(mechanism, username, password, iterations=4096)
        client.set_server_first(server.first(client.get_client_first().encode()).decode())
        server_final = server.final(client.get_client_final().encode())
        client.set_server_final(server_final.decode())

        assert server_final.startswith(b"v=")

    @all_mechanisms
    def test_our_client_with_a_wrong_password(self, mechanism: str, scramp: ModuleType) -> None:
        """If the password is wrong, scramp's server refuses the proof, and the client reports the refusal."""
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
        """If the password is wrong, the core's server refuses the proof of scramp's client."""
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
        """SASLprep yields what scramp's SASLprep yields, and keeps a password that scramp refuses."""
        foreign = importlib.import_module("scramp.utils")
        try:
            prepared = str(foreign.saslprep(password))
        except foreign.ScramException:
            prepared = password

        assert 4 == len(exchange(make_client(password=password), make_server(password=prepared)))


class TestCredentials:
    def test_wrong_user_fails_like_a_wrong_password(self) -> None:
        """An unknown user gets a challenge, and then the same error as for a wrong password."""
        server = make_server()
        client = make_client(username="stranger")
        server_first = server.first(client.first())

        assert SERVER_FIRST.encode() == server_first
        with pytest.raises(scram.ScramError, match="unknown user or wrong password"):
            server.final(client.final(server_first))

    def test_server_that_does_not_know_the_password(self) -> None:
        """If a server accepts any proof but signs with another password, the client rejects its signature."""
        messages = exchange(make_client(password="guess"), make_server(password="guess"))
        client = client_after_final()

        with pytest.raises(scram.ScramError, match="wrong server signature"):
            client.verify(messages[3])

    def test_proofs_are_compared_in_constant_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Server and client use only ``hmac.compare_digest`` to compare a proof or a signature."""
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
        """Both sides reject a user name that is empty after SASLprep."""
        for make in (make_client, make_server):
            with pytest.raises(scram.ScramError, match="the user name is empty"):
                make(username=username)

    @pytest.mark.parametrize(
        ("username", "escaped"),
        [(",", "=2C"), ("=", "=3D"), ("=2C", "=3D2C"), ("=3D,", "=3D3D=2C"), ("a=b,c", "a=3Db=2Cc")],
    )
    def test_escapes_in_the_user_name(self, username: str, escaped: str) -> None:
        """The client escapes a comma and an equals sign in the user name, and the server decodes them."""
        messages = exchange(make_client(username=username), make_server(username=username))

        assert f"n,,n={escaped},r={CLIENT_NONCE}".encode() == messages[0]

    @pytest.mark.parametrize("escaped", ["=", "a=", "=2", "=2c", "=3d", "==2C", "=2B", "a=b"])
    def test_malformed_escapes(self, escaped: str) -> None:
        """The server rejects a user name in which an equals sign starts no known escape."""
        with pytest.raises(scram.ScramError, match="=2C and =3D"):
            make_server().first(f"n,,n={escaped},r=x".encode())

    def test_password_is_in_no_error(self) -> None:
        """Neither an error about the password nor its context contains the password."""
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
        """If client and server have different spellings of a password, the messages are those of equal spellings."""
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
        """Both sides reject a user name with a character that SASLprep prohibits."""
        for make in (make_client, make_server):
            with pytest.raises(scram.ScramError, match=r"^the user name .*prohibits"):
                make(username=text)
        with pytest.raises(scram.ScramError, match=r"^the user name .*prohibits|not UTF-8"):
            make_server().first(f"n,,n={text},r=x".encode(errors="surrogatepass"))

    def test_unassigned_code_points(self) -> None:
        """A user name keeps its case, and may contain characters that are newer than Unicode 3.2 (RFC 5802)."""
        assert "n,,n=\U0001f600A,r=client-nonce".encode() == make_client(username="\U0001f600A").first()

    @pytest.mark.parametrize("password", ["\U0001f600", "a\x07", "1\u0627"])
    def test_a_prohibited_password_is_used_unchanged(self, password: str) -> None:
        """If SASLprep prohibits a password, both sides hash it unchanged, and another password does not match."""
        assert 4 == len(exchange(make_client(password=password), make_server(password=password)))
        with pytest.raises(scram.ScramError, match="wrong password"):
            exchange(make_client(password=password), make_server(password="\U0001f601"))


class TestNonces:
    @rows("make", [make_client, make_server])
    def test_every_printable_character_but_the_comma(self, make: Callable[..., object]) -> None:
        """A nonce may contain any printable ASCII character except the comma; the official client sends spaces."""
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
        """The client rejects a server nonce that does not start with the client's nonce: it belongs to another
        exchange.
        """
        with pytest.raises(scram.ScramError, match="does not extend"):
            client_after_first().final(f"r={nonce},s={SALT_TEXT},i={ITERATIONS}".encode())
