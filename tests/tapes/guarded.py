"""Program that replays all golden tapes, and prints each import of a module of I/O by a module of the core.

Its last line has the number of tapes and of calls.
"""

from __future__ import annotations

import sys

from tests.architecture.import_guard import guard

REFUSED = frozenset(
    ("socket", "ssl", "select", "threading", "time", "random", "secrets", "os", "logging", "asyncio", "trio")
)


def main() -> None:
    """Replay the tapes under guard."""
    refusals = guard("triclinium_core", REFUSED, frozenset())
    # The guard sees no import of a module that is loaded already.
    assert "triclinium_core" not in sys.modules
    from tests.tapes.golden import NAMES, path_of
    from triclinium_core.testing.replayed import replayed

    calls = sum(replayed(str(path_of(name))).calls for name in NAMES)
    for refusal in refusals:
        print(refusal)
    print(f"{len(NAMES)} tapes, {calls} calls")


if __name__ == "__main__":
    main()
