"""Failures whose cause is known and is not a fault of the nodes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from tests.live.official_suite.outcomes import OfficialResult, Outcome


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cause of some failures; either ``row`` or ``not_applicable`` is set."""

    tests: tuple[str, ...]
    """Patterns of test ids, with ``*`` and ``?``."""
    reason: str = ""
    """Regular expression that the reason of the failure must contain."""
    row: str = ""
    """Name of an unsupported feature."""
    not_applicable: str = ""
    """Reason why the tests do not apply."""

    def __post_init__(self) -> None:
        if bool(self.row) == bool(self.not_applicable):
            raise ValueError(f"{self.tests}: give either row or not_applicable")

    def covers(self, result: OfficialResult) -> bool:
        """Return whether a failure matches the tests and the reason."""
        return any(fnmatchcase(_escaped(result.test), _escaped(pattern)) for pattern in self.tests) and (
            re.search(self.reason, result.reason) is not None
        )


def read_explanations(path: Path) -> list[Explanation]:
    """Return the explanations in a file."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8"))["explained"], list[Explanation])


def explain(result: OfficialResult, explanations: Sequence[Explanation]) -> OfficialResult:
    """Return a failure with the first explanation that covers it, and any other result unchanged."""
    if result.outcome is not Outcome.FAILED:
        return result
    found = next((each for each in explanations if each.covers(result)), None)
    if found is None:
        return result
    if found.row:
        return msgspec.structs.replace(result, row=found.row)
    return OfficialResult(result.test, Outcome.NOT_APPLICABLE, found.not_applicable)


def _escaped(text: str) -> str:
    """Return a text in which the brackets of parametrized tests have no meaning in a pattern."""
    return text.replace("[", "(").replace("]", ")")
