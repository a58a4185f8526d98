"""Short soak, and the complaints about the results of a soak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak.figures import FIGURES, Samples
from tests.soak.nodes import FAULTS
from tests.soak.soak import Soak, SoakReport
from tests.soak.work import COUNTER_START, OPCODES, READS, Counted, Known, Own, Reported
from triclinium.health import ClientStatistics
from triclinium_core.testing import replayed

SECONDS = 12.0
OPERATIONS = 600
"""Minimum number of operations, which an idle machine exceeds many times."""
MINUTES = 600.0


@pytest.mark.soak
def test_twelve_seconds(tmp_path: Path) -> None:
    """After twelve seconds, no task or timer is left, the results of callers agree with the nodes, and the tape replays."""
    tape = tmp_path / "tape.jsonl"
    report = Soak(seconds=SECONDS, tasks=64, seed=1, pause=0.02, interval=1.0, operations=OPERATIONS, tape=tape).run()

    assert [] == report.complaints(), f"triclinium replay {tape}"
    assert replayed(str(tape)).calls > OPERATIONS
    tape.unlink()
    assert report.known.begun >= OPERATIONS
    assert report.known.failures
    assert report.nodes["events"].keys() & FAULTS.keys()
    assert report.nodes["events"].keys() - FAULTS.keys()


def good_report() -> SoakReport:
    """Return a report of a successful soak."""
    reported = {kind: Reported(begun=100, succeeded=97, failed=Counter(Timeout=3), maybe=2) for kind in OPCODES}
    known = Known(reported, {"counter": Counted(up=9, down=4, maybe_up=2, maybe_down=1)}, {"own": Own(5, [(0.0, 6)])})
    return SoakReport(
        seconds=MINUTES,
        known=known,
        nodes={"applied": {opcode.name: 98 for kind, opcode in OPCODES.items() if kind not in READS}},
        samples=samples(lambda second: 10**6 + second % 7),
        statistics=ClientStatistics(),
        counters={"counter": COUNTER_START + 5},
        documents={"own": 5},
    )


def samples(blocks: Callable[[int], int]) -> Samples:
    """Return one sample per second for ten minutes, with the memory blocks of a function."""
    found = Samples()
    for second in range(int(MINUTES)):
        found.add(second, **{**dict.fromkeys(FIGURES, 10**6), "blocks": blocks(second)})
    return found


def test_a_good_report_has_no_complaint() -> None:
    """A report of a successful soak has no complaint, even if an ambiguous write was applied."""
    report = good_report()
    report.documents["own"] = 6

    assert [] == report.complaints()


def break_statistics(report: SoakReport) -> None:
    """Leave operations open, and requests in flight."""
    report.statistics = ClientStatistics(open_operations=1, in_flight=2)


def grow(report: SoakReport) -> None:
    """Let the number of memory blocks grow by a hundred per second."""
    report.samples = samples(lambda second: 10**6 + 100 * second)


FLAWS: dict[str, tuple[Callable[[SoakReport], object], str]] = {
    "operations left": (break_statistics, "1 open operations are left"),
    "requests left": (break_statistics, "2 requests in flight are left"),
    "waiters left": (lambda report: setattr(report, "waiters_left", 1), "1 waiters"),
    "tasks left": (lambda report: setattr(report, "tasks_left", 1), "1 tasks"),
    "files left": (lambda report: setattr(report, "files_left", 1), "1 open files"),
    "timers left": (lambda report: report.timers_left.append("RETRY"), "RETRY"),
    "unreachable": (lambda report: report.unreachable.append("ada"), "unreachable once all was well: ada"),
    "a stranger": (lambda report: report.known.strangers.append(KeyError(1)), "unexpected failure: KeyError"),
    "not counted": (
        lambda report: report.known.reported["get"].failed.clear(),
        "get: 100 begun, but 97 succeeded and 0",
    ),
    "nothing done": (lambda report: setattr(report.known.reported["get"], "succeeded", 0), "get: none succeeded"),
    "lost": (lambda report: report.nodes["applied"].update(SET=96), "upsert: applied 96 times"),
    "applied twice": (lambda report: report.nodes["applied"].update(APPEND=100), "append: applied 100 times"),
    "count lost": (lambda report: report.counters.update(counter=COUNTER_START + 3), "counter went to 3; callers know"),
    "counted twice": (lambda report: report.counters.update(counter=COUNTER_START + 8), "counter went to 8"),
    "write lost": (lambda report: report.documents.update(own=4), "own is 4, and 5 was written last"),
    "memory": (grow, "blocks grew by"),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_each_flaw_is_reported(flaw: str) -> None:
    """For each flaw of a report, a complaint names the flaw."""
    make, text = FLAWS[flaw]
    report = good_report()
    make(report)

    assert text in "\n".join(report.complaints())


def test_memory_of_a_short_run_is_not_judged() -> None:
    """A short run has no complaint about memory, because a new client grows."""
    report = good_report()
    grow(report)
    report.seconds = SECONDS

    assert [] == report.complaints()


def test_a_trend_ignores_the_warm_up() -> None:
    """Memory that is allocated once, at the beginning, does not count as growth."""
    found = samples(lambda second: 10**6 if second > 60 else second).trend("blocks")

    assert (10**6, 10**6, 0.0) == (found.first, found.last, found.slope_per_hour)
    assert found.is_flat
    assert pytest.approx(3600.0) == samples(lambda second: second).trend("blocks").slope_per_hour
