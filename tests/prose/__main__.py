"""``python -m tests.prose``: search the project for phrases to rewrite, or draw sentences for a reader.

``check`` exits with 1 if it finds a phrase. ``sample`` prints thirty sentences, ten from each part of the project.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.prose.sampler import drawn
from tests.prose.sentences import ROOT, tracked_files
from tests.prose.sieve import findings


def main() -> int:
    """Run one of the two commands, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.prose", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="print the phrases to rewrite")
    check.add_argument("places", nargs="*", help="beginnings of paths; the whole project by default")
    sample = commands.add_parser("sample", help="print thirty sentences with their places")
    sample.add_argument("--commit", default="HEAD", help="commit whose hash is the seed")
    arguments = parser.parse_args()
    files = tracked_files(".py", ".md")
    if arguments.command == "check":
        places = tuple(arguments.places) or ("",)
        found = [*findings(path for path in files if str(path.relative_to(ROOT)).startswith(places))]
        for finding in found:
            print(finding)
        print(f"{len(found):,} phrases to rewrite in {len(files):,} files")
        return bool(found)
    named = subprocess.run(
        ["git", "rev-parse", "--verify", f"{arguments.commit}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for number, (part, prose, sentence) in enumerate(drawn(named.stdout.strip()), start=1):
        print(f"{number:2}. [{part}, {prose.kind}] {prose.path}:{prose.line}\n    {sentence}")
    return 0


sys.exit(main())
