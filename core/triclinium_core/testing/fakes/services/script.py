"""Scripted responses of services: a table from keys to responses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triclinium_core import errors
from triclinium_core.checks import check_type
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import HTTP_SERVICES
from triclinium_core.testing.fakes.services.answers import FakeAnswer


class FakeScript:
    """Responses that all nodes of a cluster send instead of the responses of their services.

    The key of a response is a string: for query and analytics, the statement, even if it was prepared; for search, the
    name of the index; for views, ``DESIGN_DOCUMENT/VIEW``; for management, the method and path, such as ``GET
    /pools/default``.
    """

    def __init__(self) -> None:
        self._exact: dict[tuple[Service, str], list[FakeAnswer]] = {}
        self._patterns: dict[tuple[Service, re.Pattern[str]], list[FakeAnswer]] = {}

    def answer(self, said: str | re.Pattern[str], *answers: FakeAnswer, service: Service = Service.QUERY) -> None:
        """Script the responses of a service to a key, in this order; the last one repeats.

        Args:
            said: a string, in which runs of white space count as one space and a final semicolon is ignored; or a
                pattern for the entire key. A string takes precedence over patterns, and an earlier pattern over a later
                pattern. The call replaces earlier responses to the same string or pattern.

        Raises:
            InvalidArgumentException: there are no answers, an argument has the wrong type, or ``service`` is not HTTP.
        """
        check_type(said, "said", str, re.Pattern)
        if not answers:
            raise errors.InvalidArgumentException(
                f"answers is empty for {said!r}; pass one or more", parameter="answers"
            )
        for answer in answers:
            check_type(answer, "answers", FakeAnswer)
        if service not in HTTP_SERVICES:
            raise errors.InvalidArgumentException(
                f"service={service!r} must be an HTTP service, such as Service.QUERY", parameter="service"
            )
        if isinstance(said, str):
            self._exact[service, normalized(said)] = list(answers)
        else:
            self._patterns[service, said] = list(answers)

    def clear(self) -> None:
        """Remove all responses."""
        self._exact.clear()
        self._patterns.clear()

    def has(self, service: Service, said: str) -> bool:
        """Return whether a key is scripted, without using up a response."""
        said = normalized(said)
        return (service, said) in self._exact or any(
            of == service and pattern.fullmatch(said) is not None for of, pattern in self._patterns
        )

    def take(self, service: Service, said: str) -> FakeAnswer | None:
        """Return the next response to a key, and remove it unless it is the last; None if the key is not scripted."""
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
    """Return a statement with single spaces and without a final semicolon."""
    return " ".join(statement.split()).removesuffix(";").rstrip()
