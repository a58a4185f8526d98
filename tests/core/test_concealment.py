"""Credentials in foreign text."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import pytest

from tests.rows import rows
from triclinium_core.concealment import CONCEALED, NO_SECRETS, PASSWORD_MIN, TEXT_SIZE_MAX, Secrets

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
    ],
)
def test_a_text_that_repeats_credentials(echo: str, expected: str) -> None:
    """A token is replaced if it is whole, cut, wrapped, escaped or in another case; so is a readable password."""
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
    """A password with special characters is found in a form, in HTML and in JSON."""
    assert f"p={CONCEALED}" == Secrets(passwords=("correct horse+b&t\u00e4ry<",)).conceal(f"p={echo}")


@pytest.mark.parametrize("text", ["", "the password is wrong", "İstanbul 100% \\u00", "Basic realm", "app"])
def test_a_text_without_credentials(text: str) -> None:
    """A text without credentials is returned unchanged."""
    assert text == SECRETS.conceal(text)
    assert text == NO_SECRETS.conceal(text)


def test_a_short_secret() -> None:
    """A token shorter than a part is replaced only as a word, and a password below the minimum is not replaced."""
    short = Secrets(("Og==",)).with_passwords(("x" * (PASSWORD_MIN - 1), "y" * PASSWORD_MIN))

    assert f"{CONCEALED} xOg==x xxxxx {CONCEALED}" == short.conceal("Og== xOg==x xxxxx yyyyyy")


def test_secrets_are_not_shown() -> None:
    """The representation contains no secret."""
    assert "Secrets()" == repr(SECRETS)


@pytest.mark.parametrize("excess", [0, 1, 100_000])
def test_a_text_that_is_too_long_to_search(excess: int) -> None:
    """A text above the bound is cut, so that nothing is returned that was not searched."""
    text = f"{TOKEN} ".ljust(TEXT_SIZE_MAX + excess, "-")
    concealed = SECRETS.conceal(text)

    assert concealed.startswith(f"{CONCEALED} ---")
    assert len(concealed) == TEXT_SIZE_MAX - len(TOKEN) + len(CONCEALED)
    assert concealed.endswith("...") == bool(excess)
