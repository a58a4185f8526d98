"""Results of all files: text for people, and JSON that is committed with the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tests.live.official_suite.outcomes import OfficialResult, Outcome

TABLE = Path(__file__).parents[3] / "docs/reference/official_tests.json"
"""Newest results, as the page ``not_supported`` shows them."""


class Failure(msgspec.Struct, frozen=True):
    """One failed test; ``row`` is the unsupported feature that explains it, or empty."""

    test: str
    reason: str
    row: str


class FileResults(msgspec.Struct, frozen=True):
    """Results of one file."""

    file: str
    passed: int
    failed: int
    not_applicable: int
    failures: tuple[Failure, ...]
    reasons_not_applicable: dict[str, int]
    """Number of tests by the reason why they do not apply."""


class SuiteResults(msgspec.Struct, frozen=True):
    """Results of a run."""

    commit: str
    """Commit of the tests."""
    client: str
    """Version of the installed client."""
    files: tuple[FileResults, ...]

    @property
    def unexplained(self) -> list[Failure]:
        """Failures that no unsupported feature explains."""
        return [failure for file in self.files for failure in file.failures if not failure.row]


def results_of(file: str, results: Sequence[OfficialResult]) -> FileResults:
    """Return the counts of one file, and its failures in order of the test ids."""
    counts = Counter(result.outcome for result in results)
    skipped = Counter(result.reason for result in results if result.outcome is Outcome.NOT_APPLICABLE)
    failed = sorted((result for result in results if result.outcome is Outcome.FAILED), key=lambda each: each.test)
    return FileResults(
        file=file,
        passed=counts[Outcome.PASSED],
        failed=counts[Outcome.FAILED],
        not_applicable=counts[Outcome.NOT_APPLICABLE],
        failures=tuple(Failure(each.test, each.reason, each.row) for each in failed),
        reasons_not_applicable=dict(sorted(skipped.items())),
    )


def describe(results: SuiteResults) -> str:
    """Return the results as text: the counts, failures and skipped tests of each file, and the totals."""
    width = max((len(each.file) for each in results.files), default=0)
    lines = [f"{'file':{width}}  passed  failed  not applicable"]
    for each in results.files:
        lines.append(f"{each.file:{width}}  {each.passed:6}  {each.failed:6}  {each.not_applicable:14}")
        lines += [
            f"  {failure.test.partition('::')[2]}\n    {_cause(failure)}{failure.reason}" for failure in each.failures
        ]
        lines += [f"  not applicable ({count}): {reason}" for reason, count in each.reasons_not_applicable.items()]
    lines.append(
        f"{'total':{width}}  {_sum('passed', results.files):6}  {_sum('failed', results.files):6}  "
        f"{_sum('not_applicable', results.files):14}"
    )
    lines.append(f"{len(results.unexplained)} failures that no unsupported feature explains")
    lines.append(f"tests of commit {results.commit}, client {results.client}")
    return "\n".join(lines)


def markdown_rows(results: SuiteResults) -> list[str]:
    """Return the rows of the page's tables: each cause of failures, each file, and the total."""
    causes = Counter(failure.row for file in results.files for failure in file.failures)
    rows = [f"| `{row}` | {count} |" for row, count in causes.most_common()]
    rows += [f"| `{each.file}` | {each.passed} | {each.failed} | {each.not_applicable} |" for each in results.files]
    sums = " | ".join(str(_sum(name, results.files)) for name in ("passed", "failed", "not_applicable"))
    return [*rows, f"| total | {sums} |"]


def _cause(failure: Failure) -> str:
    return f"not supported ({failure.row}): " if failure.row else ""


def _sum(name: str, files: Iterable[FileResults]) -> int:
    return sum(getattr(each, name) for each in files)
