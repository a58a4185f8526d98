"""SCRAM messages: a malformed or changed one ends the exchange, a call out of order fails, extensions are valid."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, strategies as st

from tests.core.runtime.kv.connection.scram_exchange import (
    CLIENT_NONCE,
    ITERATIONS,
    NONCE,
    PASSWORD,
    SALT,
    SALT_TEXT,
    SERVER_FIRST,
    USERNAME,
    Tamper,
    client_after_final,
    client_after_first,
    exchange,
    make_client,
    make_server,
    server_after_first,
)
from tests.rows import rows
from triclinium_core.runtime.kv.connection import scram


def replacing(at_step: int, replacement: bytes) -> Tamper:
    """Return a function that replaces the message of this step."""
    return lambda step, message: replacement if step == at_step else message


def appending(at_step: int, tail: bytes) -> Tamper:
    """Return a function that appends bytes to the message of this step."""
    return lambda step, message: message + tail if step == at_step else message


RECEIVE: dict[str, Callable[[bytes], object]] = {
    "client-first-message": lambda message: make_server().first(message),
    "server-first-message": lambda message: client_after_first().final(message),
    "client-final-message": lambda message: server_after_first().final(message),
    "server-final-message": lambda message: client_after_final().verify(message),
}
"""Function that receives each kind of message, on a side that expects it."""
# fmt: off
MALFORMED = {
    "client-first-message": [
        ("", "has no header like n,,"),
        ("n,", "has no header like n,,"),
        ("n,,", "'' is not an attribute"),
        (",,n=user,r=x", "the header must begin with n or y"),
        ("N,,n=user,r=x", "the header must begin with n or y"),
        ("p=tls-unique,,n=user,r=x", "channel binding is not supported"),
        ("n,a=admin,n=user,r=x", "'a=admin'"),
        ("n,user,n=user,r=x", "rights of another user"),
        ("n,,r=x,n=user", "must begin with n=, r=, .*has 'r=, n='"),
        ("n,,n=user", "must begin with n=, r=, .*has 'n='"),
        ("n,,r=x", "must begin with n=, r=, .*has 'r='"),
        ("n,,n=user,r=x,r=y", "the attribute r= .*twice"),
        ("n,,n=user,r=a\tb", r"r= 'a b' must be printable ASCII"),
        ("n,,n=user,r=\u00e9", r"r= '\\xe9' must be printable ASCII"),
        ("n,,m=1,n=user,r=x", "mandatory extension 'm=1'"),
    ],
    "server-first-message": [
        ("", "'' is not an attribute"),
        (f"r={NONCE}", "must begin with r=, s=, i=, .*has 'r='"),
        (f"r={NONCE},i={ITERATIONS}", "must begin with r=, s=, i=, .*has 'r=, i='"),
        (f"r={NONCE},s={SALT_TEXT}", "must begin with r=, s=, i=, .*has 'r=, s='"),
        (f"s={SALT_TEXT},i={ITERATIONS}", "has 's=, i='"),
        (f"s={SALT_TEXT},r={NONCE},i={ITERATIONS}", "has 's=, r=, i='"),
        (f"R={NONCE},S={SALT_TEXT},I={ITERATIONS}", "has 'R=, S=, I='"),
        (f"x=1,{SERVER_FIRST}", "has 'x=, r=, s=, i='"),
        (f"{SERVER_FIRST},i={ITERATIONS}", "the attribute i= .*twice"),
        (f"{SERVER_FIRST},x=1,x=2", "the attribute x= .*twice"),
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
        (f"c=biws,r={NONCE},p=QQ==,p=QQ==", "the attribute p= .*twice"),
        (f"r={NONCE},p=QQ==", "must begin with c=, r="),
        ("c=biws,p=QQ==", "must begin with c=, r="),
        (f"c=eSws,r={NONCE},p=QQ==", "the channel binding "),
        (f"c=biw,r={NONCE},p=QQ==", "c= is not base64"),
        (f"c=biws,r={CLIENT_NONCE},p=QQ==", "the nonce "),
        (f"c=biws,r={NONCE},p=Q", "p= is not base64"),
        (f"c=biws,r={NONCE},p=QQ==", "unknown user or wrong password"),
        (f"c=biws,r={NONCE},m=1,p=QQ==", "mandatory extension 'm=1'"),
    ],
    "server-final-message": [
        ("", "'' is not an attribute"),
        ("v=", "'v=' is not an attribute"),
        ("v=Q", "v= is not base64"),
        ("v=QQ==", "wrong server signature"),
        ("x=1", "must begin with v=, .*has 'x='"),
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
        """If a message violates the RFC, the error names the message and the reason."""
        with pytest.raises(scram.ScramError, match=f"^{name}: .*{reason}"):
            RECEIVE[name](message.encode())

    @pytest.mark.parametrize("name", RECEIVE)
    def test_not_utf8(self, name: str) -> None:
        """If a message is not UTF-8, the error names the position of the first wrong byte."""
        with pytest.raises(scram.ScramError, match=f"^{name}: not UTF-8 at byte 2$"):
            RECEIVE[name](b"r=\xff")

    @pytest.mark.parametrize("name", RECEIVE)
    def test_too_large(self, name: str) -> None:
        """A message above the maximum size is rejected before it is parsed."""
        with pytest.raises(scram.ScramError, match=f"^{name}: 4097 bytes .*4096"):
            RECEIVE[name](bytes(scram.MESSAGE_SIZE_MAX + 1))

    def test_largest(self) -> None:
        """A message of the maximum size is accepted."""
        message = f"{SERVER_FIRST},x=".ljust(scram.MESSAGE_SIZE_MAX, "x").encode()

        assert client_after_first().final(message).startswith(b"c=biws,")


def proof_of(auth_message: str) -> str:
    """Compute the client's proof as RFC 5802 section 3 specifies it, independently of the code under test."""
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
        """The server accepts a valid header that c= repeats, and includes unknown extensions in what it signs."""
        bare = f"n=user,r={CLIENT_NONCE}{in_first}"
        server = make_server()
        server_first = server.first(f"{header}{bare}".encode()).decode()
        without_proof = f"c={b64encode(header.encode()).decode()},r={NONCE}{in_final}"
        proof = proof_of(f"{bare},{server_first},{without_proof}")

        assert server.final(f"{without_proof},p={proof}".encode()).startswith(b"v=")

    def test_to_the_server_first_message(self) -> None:
        """The client includes an unknown extension of the server's first message in what it signs."""
        server_first = f"{SERVER_FIRST},x=a=b,Y=\u00e9"
        without_proof = f"c=biws,r={NONCE}"
        proof = proof_of(f"n=user,r={CLIENT_NONCE},{server_first},{without_proof}")

        assert f"{without_proof},p={proof}".encode() == client_after_first().final(server_first.encode())

    def test_to_the_server_final_message(self) -> None:
        """The client ignores an extension after a valid signature, and rejects any other addition."""
        messages = exchange(make_client(), make_server(), appending(3, b",x=1"))

        assert messages[3].endswith(b",x=1")
        for tail in (b",e=other-error", b",m=1", b",v=QQ==", b",x", b"\0", b","):
            with pytest.raises(scram.ScramError, match=r"^server-final-message: "):
                exchange(make_client(), make_server(), appending(3, tail))


class TestTurns:
    def test_first_comes_first(self) -> None:
        """Before its first call, a side rejects every other call, and then completes an exchange."""
        client, server = make_client(), make_server()
        calls: list[Callable[[bytes], object]] = [client.final, client.verify, server.final]
        for call in calls:
            with pytest.raises(scram.ScramError, match=r"^(final|verify)\(\) .*first\(\)$"):
                call(b"v=QQ==")

        assert 4 == len(exchange(client, server))

    def test_call_out_of_turn_changes_nothing(self) -> None:
        """A call out of order raises an error, and the exchange continues afterwards."""
        client, server = client_after_first(), server_after_first()
        calls: list[Callable[[], object]] = [
            client.first,
            lambda: client.verify(b"v=QQ=="),
            lambda: server.first(b"n,,n=user,r=x"),
        ]
        for call in calls:
            with pytest.raises(scram.ScramError, match=r"final\(\)$"):
                call()

        client.verify(server.final(client.final(SERVER_FIRST.encode())))

    def test_nothing_happens_twice(self) -> None:
        """After an exchange has completed, each of its calls raises an error."""
        client, server = make_client(), make_server()
        client_first, server_first, client_final, server_final = exchange(client, server)
        calls: list[Callable[[], object]] = [
            client.first,
            lambda: client.final(server_first),
            lambda: client.verify(server_final),
            lambda: server.first(client_first),
        ]
        for call in calls:
            with pytest.raises(scram.ScramError, match="the exchange is over"):
                call()
        with pytest.raises(scram.ScramError, match="the exchange is over"):
            server.final(client_final)

    def test_failure_is_the_end(self) -> None:
        """After a side has rejected a message, it also rejects the valid one."""
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
            with pytest.raises(scram.ScramError, match="the exchange is over"):
                receive(message)


def garbled(original: bytes) -> Iterator[bytes]:
    """Yield the message with one byte changed, in a single bit or to a delimiter, for each position."""
    for position, byte in enumerate(original):
        for other in {*b",=", *(byte ^ mask for mask in (0x01, 0x80))} - {byte}:
            yield original[:position] + bytes([other]) + original[position + 1 :]


def with_a_byte_more(original: bytes) -> Iterator[bytes]:
    """Yield the message with one more byte, for each position."""
    for position in range(len(original) + 1):
        for byte in (b",", b"=", b"y"):
            yield original[:position] + byte + original[position:]


def truncated(original: bytes) -> Iterator[bytes]:
    """Yield every incomplete prefix and suffix of the message."""
    for position in range(1, len(original)):
        yield original[:position]
        yield original[position:]
    yield b""


def with_parts_missing_or_twice(original: bytes) -> Iterator[bytes]:
    """Yield the message with one comma-separated part removed or repeated, for each part."""
    parts = original.split(b",")
    for index, part in enumerate(parts):
        yield b",".join(parts[:index] + parts[index + 1 :])
        for place in range(len(parts) + 1):
            yield b",".join([*parts[:place], part, *parts[place:]])


def is_refused(tamper: Tamper) -> bool:
    """Return whether either side rejects a message that ``tamper`` changes."""
    try:
        exchange(make_client(), make_server(), tamper)
    except scram.ScramError:
        return True
    return False


class TestTampering:
    @rows("step", range(4))
    @rows("variants_of", [garbled, with_a_byte_more, truncated, with_parts_missing_or_twice])
    def test_nothing_goes_unnoticed(self, step: int, variants_of: Callable[[bytes], Iterator[bytes]]) -> None:
        """If any message is changed at any position, one side stops the exchange."""
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
        """An arbitrary message is no valid proof; an error about it is one line of ASCII without the password."""
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
        """Any credentials and nonce either raise in the constructor or complete an exchange."""
        try:
            client = make_client("SCRAM-SHA1", username, password, nonce=nonce)
        except scram.ScramError:
            return

        assert 4 == len(exchange(client, make_server("SCRAM-SHA1", username, password)))
