"""To authenticate again: every answer to SASL and SELECT_BUCKET, with another authenticator waiting or none."""

from __future__ import annotations

import pytest

from triclinium_core.kv.node.bootstrap import FailureKind
from triclinium_core.kv.node.news import BucketSelected, News, SaslAnswered
from triclinium_core.kv.node.reauthentication import Question, Reauthentication
from triclinium_core.kv.node.sasl import SaslExchange
from triclinium_core.kv.wire.constants import Magic, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.options import JwtAuthenticator, PasswordAuthenticator
from triclinium_core.retry.kv_status import Status

ADA = PasswordAuthenticator("ada", "secret", ("PLAIN",))
TOKEN = JwtAuthenticator("a.b.c", allow_unencrypted=True)
PLAIN: Question = (Opcode.SASL_AUTH, b"PLAIN", b"\0ada\0secret")
BEARER: Question = (Opcode.SASL_AUTH, b"OAUTHBEARER", b"n,,\x01auth=Bearer a.b.c\x01\x01")
SELECT: Question = (Opcode.SELECT_BUCKET, b"travel", b"")


def exchange(authenticator: PasswordAuthenticator | JwtAuthenticator = ADA) -> SaslExchange:
    """Return an exchange that has not begun."""
    return SaslExchange(authenticator, tls=False, nonce="a-nonce-of-the-user-")


def answer(opcode: Opcode, status: Status) -> Frame:
    """Return an answer without a body."""
    return Frame(Magic.CLIENT_RESPONSE, opcode, status, 0, 1, 0, b"", b"", b"", b"")


def hear(again: Reauthentication, *answers: tuple[Opcode, Status]) -> tuple[list[Question | None], list[News]]:
    """Return what is asked at first and after each answer, and the news."""
    news: list[News] = []
    return [again.start(), *(again.receive(answer(*each), news) for each in answers)], news


def test_without_a_bucket() -> None:
    """SASL is all there is to do."""
    again = Reauthentication(exchange(), None)
    asked, news = hear(again, (Opcode.SASL_AUTH, Status.SUCCESS))

    assert [PLAIN, None] == asked
    assert [SaslAnswered(Status.SUCCESS)] == news
    assert again.failure is None


def test_with_a_bucket() -> None:
    """It is selected again."""
    again = Reauthentication(exchange(), "travel")
    asked, news = hear(again, (Opcode.SASL_AUTH, Status.SUCCESS), (Opcode.SELECT_BUCKET, Status.SUCCESS))

    assert [PLAIN, SELECT, None] == asked
    assert [SaslAnswered(Status.SUCCESS), BucketSelected("travel", Status.SUCCESS)] == news
    assert again.failure is None


def test_refused_credentials() -> None:
    """Nothing more is asked."""
    again = Reauthentication(exchange(), "travel")
    asked, news = hear(again, (Opcode.SASL_AUTH, Status.AUTH_ERROR))

    assert [PLAIN, None] == asked
    assert [SaslAnswered(Status.AUTH_ERROR)] == news
    assert again.failure is not None
    assert FailureKind.CREDENTIALS is again.failure.kind


@pytest.mark.parametrize("status", [Status.NO_ACCESS, Status.KEY_NOT_FOUND, Status.TEMPORARY_FAILURE])
def test_a_bucket_that_cannot_be_selected(status: Status) -> None:
    """The connection is of no use; only one of the answers says that nobody need knock again."""
    again = Reauthentication(exchange(), "travel")
    _, news = hear(again, (Opcode.SASL_AUTH, Status.SUCCESS), (Opcode.SELECT_BUCKET, status))

    assert BucketSelected("travel", status) == news[-1]
    assert again.failure is not None
    assert (FailureKind.BUCKET, status) == (again.failure.kind, again.failure.status)
    assert (status is Status.NO_ACCESS) == again.failure.is_denial


@pytest.mark.parametrize(
    "answers",
    [
        [(Opcode.SASL_AUTH, Status.AUTH_ERROR)],
        [(Opcode.SASL_AUTH, Status.SUCCESS), (Opcode.SELECT_BUCKET, Status.NO_ACCESS)],
    ],
    ids=["credentials", "bucket"],
)
def test_somebody_else_is_waiting(answers: list[tuple[Opcode, Status]]) -> None:
    """What is refused to who was replaced is no news: the next one is tried instead, and once."""
    again = Reauthentication(exchange(), "travel")
    again.next_exchange = exchange(TOKEN)
    asked, news = hear(again, *answers)

    assert BEARER == asked[-1]
    assert [SaslAnswered(Status.SUCCESS)] * (len(answers) - 1) == news
    assert TOKEN == again.exchange.authenticator
    assert again.next_exchange is None
    assert again.failure is None
