"""A token: what it tells, and who may take it back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.smithy import SingleUseToken, require_scope
from triclinium_core.retry.smithy.tokens import require_token

OWNER = object()


def test_what_it_tells() -> None:
    """All of it can be read."""
    token: Any = SingleUseToken(OWNER, "s3", 2, 0.5, 14)

    assert (2, 3, 0.5, 14, "s3", False, False) == (
        token.retry_count,
        token.attempt_count,
        token.retry_delay,
        token.quota_acquired,
        token.token_scope,
        token.holds_slot,
        token.is_used,
    )
    assert "SingleUseToken(token_scope='s3', retry_count=2, retry_delay=0.5)" == repr(token)


def test_its_owner_takes_it_once() -> None:
    """Then the error says that it was used."""
    token = SingleUseToken(OWNER)
    assert token is require_token(token, OWNER, "token")

    token.owner = None

    assert token.is_used
    with pytest.raises(ArgumentError, match=r"^token=SingleUseToken\(.*has been used; a token serves one"):
        require_token(token, OWNER, "token")


class Stranger:
    """A token of another library, which cannot be shown."""

    retry_count = 0
    retry_delay = 0.0

    def __repr__(self) -> str:
        raise OSError("not to be shown")


@rows(
    ("token", "message"),
    [
        (SingleUseToken(object()), r"^token=SingleUseToken\(.* comes from another strategy; give it back"),
        (Stranger(), "^token is a Stranger; it must be the token that"),
        (None, "^token is a NoneType; it must be the token that"),
    ],
)
def test_tokens_of_others(token: Any, message: str) -> None:
    """Each error says what to do."""
    with pytest.raises(ArgumentError, match=message) as caught:
        require_token(token, OWNER, "token")

    assert "token" == caught.value.parameter


@rows("scope", [0, b"s3", ["s3"]])
def test_what_is_no_scope(scope: Any) -> None:
    """The error names it."""
    with pytest.raises(ArgumentError, match="token_scope=") as caught:
        require_scope(scope)

    assert "token_scope" == caught.value.parameter
