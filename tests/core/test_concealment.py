"""Concealment of credentials in texts that other programs wrote."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import pytest

from tests.rows import rows
from triclinium_core.concealment import BEGINNING_MIN, CONCEALED, NO_SECRETS, PASSWORD_MIN, TEXT_SIZE_MAX, Secrets

TOKEN = b64encode(b"app:s3cret>password?").decode()
SECRETS = Secrets((TOKEN,), ("app:s3cret>password?", "s3cret>password?"))


@rows(
    ("echo", "expected"),
    [
        (f"authorization: Basic {TOKEN} x", f"authorization: Basic {CONCEALED} x"),
        (TOKEN.upper(), CONCEALED),
        (TOKEN[:9], CONCEALED),
        (f"a {TOKEN[4:15]}...", f"a {CONCEALED}..."),
        (f"{TOKEN[:12]} {TOKEN[12:]}", f"{CONCEALED} {CONCEALED}"),
        (quote(TOKEN, safe=""), CONCEALED),
        ("".join(f"%{ord(each):02X}" for each in TOKEN), CONCEALED),
        ("".join(f"&#{ord(each)};" for each in TOKEN), CONCEALED),
        ("".join(f"&#x{ord(each):x};" for each in TOKEN), CONCEALED),
        ("".join(f"\\u{ord(each):04x}" for each in TOKEN), CONCEALED),
        ("user app:s3cret>password? is wrong", f"user {CONCEALED} is wrong"),
        ("password=s3cret%3Epassword%3F&", f"password={CONCEALED}&"),
        ("password s3cr...", f"password {CONCEALED}..."),
        ("password S3CRET>passw... is not an object", f"password {CONCEALED}... is not an object"),
        ("p=s3cret%3Epass...", f"p={CONCEALED}..."),
        ("p=s3cret%3...", f"p={CONCEALED}..."),
        ("p=s3cret\\u00...", f"p={CONCEALED}..."),
        ("p=s3cret&#6...", f"p={CONCEALED}..."),
        ("p=s3cret&g...", f"p={CONCEALED}..."),
        ("user app:s3cret>p...", f"user {CONCEALED}..."),
        (f"authorization: Basic {TOKEN[:4]}...", f"authorization: Basic {CONCEALED}..."),
        (f"authorization: Basic {TOKEN[:5]}...", f"authorization: Basic {CONCEALED}..."),
        ("s3cret s3cr... s3cre...", f"s3cret {CONCEALED}... {CONCEALED}..."),
    ],
)
def test_a_text_that_repeats_credentials(echo: str, expected: str) -> None:
    """A credential is concealed if it is complete, cut, wrapped, escaped or in another case, also before an ellipsis."""
    assert expected == SECRETS.conceal(echo)


@rows(
    "echo",
    [
        "correct horse+b&t\u00e4ry<",
        "correct+horse%2Bb%26t%C3%A4ry%3C",
        "correct horse+b&amp;t\u00e4ry&lt;",
        "CORRECT HORSE+B\\u0026T\\u00C4RY\\u003c",
    ],
)
def test_a_password_with_signs_that_formats_escape(echo: str) -> None:
    """A password with special characters is concealed in a form, in HTML and in JSON."""
    assert f"p={CONCEALED}" == Secrets(passwords=("correct horse+b&t\u00e4ry<",)).conceal(f"p={echo}")


NOT_CUT = ("p=s3c...", "p=s3cr", "s3cret is wrong", "as3cret...", "p=s3crxt...", "s3cret ..")
"""Texts whose start of a credential is too short, within a word, changed, or not directly followed by dots."""


@pytest.mark.parametrize("text", ["", "the password is wrong", "İstanbul 100% \\u00", "Basic realm", "app", *NOT_CUT])
def test_a_text_without_credentials(text: str) -> None:
    """A text without a credential, or without a cut credential before dots, is returned unchanged."""
    assert text == SECRETS.conceal(text)
    assert text == NO_SECRETS.conceal(text)


def test_a_short_secret() -> None:
    """A token shorter than a part is concealed only as a word; a password below the minimum length is not concealed."""
    short = Secrets(("Og==",)).with_passwords(("x" * (PASSWORD_MIN - 1), "y" * PASSWORD_MIN))

    assert f"{CONCEALED} xOg==x xxxxx {CONCEALED}" == short.conceal("Og== xOg==x xxxxx yyyyyy")


def test_secrets_are_not_shown() -> None:
    """The repr of ``Secrets`` contains no secret."""
    assert "Secrets()" == repr(SECRETS)


@pytest.mark.parametrize("excess", [0, 1, 100_000])
def test_a_text_that_is_too_long_to_search(excess: int) -> None:
    """If a text is longer than the search limit, it is cut there, so that no unsearched text is returned."""
    text = f"{TOKEN} ".ljust(TEXT_SIZE_MAX + excess, "-")
    concealed = SECRETS.conceal(text)

    assert concealed.startswith(f"{CONCEALED} ---")
    assert len(concealed) == TEXT_SIZE_MAX - len(TOKEN) + len(CONCEALED)
    assert concealed.endswith("...") == bool(excess)


@rows("kept", range(BEGINNING_MIN, len("s3cret>password?")))
def test_a_credential_at_the_limit_of_a_text(kept: int) -> None:
    """If the search limit cuts a credential, its start is concealed too."""
    before = "-" * (TEXT_SIZE_MAX - len("...") - kept - 1)
    concealed = SECRETS.conceal(f"{before} s3cret>password? {before}")

    assert f"{before} {CONCEALED}..." == concealed


def test_many_cuts() -> None:
    """If a text has hundreds of cut credentials, the start of each is concealed."""
    secrets = Secrets(passwords=("a" * 300,))

    assert f"{CONCEALED}... " * 500 == secrets.conceal("aaaaa... " * 500)
