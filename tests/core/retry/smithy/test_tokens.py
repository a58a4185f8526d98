"""Token of a strategy: its attributes, and objects that a strategy does not accept as its token."""

from __future__ import annotations

from typing import Any

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry.smithy import SingleUseToken
from triclinium_core.retry.smithy.tokens import require_token

OWNER = object()


def test_attributes() -> None:
    """A token has the number of its attempt, its delay, its scope and its quota cost."""
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


class Stranger:
    """Token of another library, whose ``repr`` raises."""

    retry_count = 0
    retry_delay = 0.0

    def __repr__(self) -> str:
        raise OSError("not to be shown")


@rows(
    ("token", "message"),
    [
        (SingleUseToken(object()), r"^token=SingleUseToken\(.* comes from another strategy"),
        (Stranger(), "^token is of type Stranger; it must be the token that"),
        (None, "^token is of type NoneType; it must be the token that"),
    ],
)
def test_foreign_tokens(token: Any, message: str) -> None:
    """If a token of another strategy or any other object is used as a token, the error has the next step."""
    with refusal_of("token", message):
        require_token(token, OWNER, "token")
