"""Scripted answers of services: a table from statements to answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triclinium_core import errors
from triclinium_core.checks import check_type
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import HTTP_SERVICES
from triclinium_core.testing.fakes.services.answers import FakeAnswer


class FakeScript:
    """The answers that all nodes of a cluster give instead of their own.

    What is answered goes by a text: the statement for query and analytics, also where it was prepared; the name of the
    index for search; ``DESIGN_DOCUMENT/VIEW`` for views; method and path for management, ``GET /pools/default``.
    """

    def __init__(self) -> None:
        self._exact: dict[tuple[Service, str], list[FakeAnswer]] = {}
        self._patterns: dict[tuple[Service, re.Pattern[str]], list[FakeAnswer]] = {}

    def answer(self, said: str | re.Pattern[str], *answers: FakeAnswer, service: Service = Service.QUERY) -> None:
        """Have a service answer this, in turn, and the last one from then on.

        Args:
            said: a text, in which white space counts once and a semicolon at the end not at all; or a pattern that the
                whole of it matches. A text goes before a pattern, an earlier pattern before a later one. What was
                answered to the same text or pattern before is forgotten.

        Raises:
            InvalidArgumentException: there is no answer, or an argument is of another type.
        """
        check_type(said, "said", str, re.Pattern)
        if not answers:
            raise errors.InvalidArgumentException(
                f"answers is empty for {said!r}; give one or more", parameter="answers"
            )
        for answer in answers:
            check_type(answer, "answers", FakeAnswer)
        if service not in HTTP_SERVICES:
            raise errors.InvalidArgumentException(
                f"service={service!r} must be a service over HTTP, such as Service.QUERY", parameter="service"
            )
        if isinstance(said, str):
            self._exact[service, normalized(said)] = list(answers)
        else:
            self._patterns[service, said] = list(answers)

    def clear(self) -> None:
        """Forget all answers."""
        self._exact.clear()
        self._patterns.clear()

    def take(self, service: Service, said: str) -> FakeAnswer | None:
        """Return what is answered to a text now; None where the script does not say."""
        said = normalized(said)
        answers: list[FakeAnswer] | None = self._exact.get((service, said))
        if answers is None:
            matching: Sequence[list[FakeAnswer]] = [
                answers
                for (of, pattern), answers in self._patterns.items()
                if of == service and pattern.fullmatch(said) is not None
            ]
            answers = matching[0] if matching else None
        if answers is None:
            return None
        return answers.pop(0) if len(answers) > 1 else answers[0]


def normalized(statement: str) -> str:
    """Return a statement with white space that counts once, and without a semicolon at its end."""
    return " ".join(statement.split()).removesuffix(";").rstrip()
