"""``python -m tests.live.official_suite``: run the official Python client's tests with ``triclinium serve``.

The checkout is a clone of couchbase/couchbase-python-client. Each of its test files runs against new nodes, with a
released client in a separate virtual environment; nothing in the checkout is changed.

Exit status: 0 if every failure is explained by a row of docs/reference/not_supported.md, 1 if one is not, 2 for invalid
arguments, such as a folder that is not a checkout.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from tests.environment import CACHE
from tests.live.official_suite.client import CannotRun, Checkout, lay_out, prepare_environment, version_of
from tests.live.official_suite.explained import explain, read_explanations
from tests.live.official_suite.run import Suite
from tests.live.official_suite.table import FileResults, SuiteResults, describe, results_of

EXPLAINED = Path(__file__).with_name("explained.toml")


def main(arguments: Sequence[str]) -> int:
    """Run the tests, print the results, and return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        checkout = Checkout(options.checkout.resolve())
        commit = checkout.commit
        files = [path for path in checkout.files if fnmatchcase(path, options.files)]
        if not files:
            known = f"the first of the files is {checkout.files[0]}" if checkout.files else "the checkout has none"
            raise CannotRun(f"no test file matches {options.files!r}; {known}")
        python = options.python or prepare_environment(CACHE / f"official-{options.client}", options.client, checkout)
        version = version_of(python)
    except CannotRun as problem:
        print(f"official_suite: {problem}", file=sys.stderr)  # noqa: T201 - the output of this command
        return 2
    with tempfile.TemporaryDirectory() as folder:
        lay_out(checkout, python, Path(folder))
        results = SuiteResults(commit, version, _run(Suite(python, Path(folder), options.seconds), files, options.jobs))
    print(describe(results))  # noqa: T201 - the output of this command
    if options.json is not None:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    return 1 if results.unexplained else 0


def _run(suite: Suite, files: Sequence[str], jobs: int) -> tuple[FileResults, ...]:
    """Run the files, several at a time, and return their results in order; print a line after each."""
    explanations = read_explanations(EXPLAINED)

    def run(path: str) -> FileResults:
        report = suite.run(path)
        found = results_of(path, [explain(result, explanations) for result in report.results])
        line = f"{path}: {found.passed} passed, {found.failed} failed, {found.not_applicable} not applicable"
        print(f"{line}, {report.seconds:.0f} s", file=sys.stderr, flush=True)  # noqa: T201 - progress
        return found

    with ThreadPoolExecutor(jobs) as pool:
        return tuple(pool.map(run, files))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.live.official_suite", description=__doc__)
    parser.add_argument("checkout", type=Path, help="clone of couchbase/couchbase-python-client")
    parser.add_argument(
        "--client",
        default=importlib.metadata.version("couchbase"),
        metavar="VERSION",
        help="version of the client to install [default: %(default)s, which this repository's tests use]",
    )
    parser.add_argument(
        "--python", type=Path, help="interpreter that has the client and its test requirements [default: install them]"
    )
    parser.add_argument("--files", default="*", metavar="PATTERN", help="test files to run, such as '*/query_t.py'")
    parser.add_argument("--seconds", type=_seconds, default=600.0, help="time limit of one file [default: 600]")
    parser.add_argument("--jobs", type=_jobs, default=4, help="files to run at a time [default: 4]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON too")
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 86400")
    return seconds


def _jobs(text: str) -> int:
    jobs = int(text)
    if not 1 <= jobs <= 64:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 64")
    return jobs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
