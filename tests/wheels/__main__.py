"""Check of built wheels: ``python -m tests.wheels WHEEL …``. Exits with 1 if the description of one has a fault."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.wheels import description_of, faults_of


def main(arguments: list[str]) -> int:
    """Print a line for each wheel, and return the exit status: 2 without wheels, 1 with faults, else 0."""
    if not arguments:
        print("usage: python -m tests.wheels WHEEL …", file=sys.stderr)
        return 2
    status = 0
    for wheel in map(Path, arguments):
        faults = faults_of(description_of(wheel))
        print(f"{wheel.name}: {', '.join(faults) or 'its description needs no repository'}")
        status |= bool(faults)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
