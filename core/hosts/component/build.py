"""Build of the component: the retry rules of the core as WebAssembly.

Usage: ``uv run python core/hosts/component/build.py FOLDER`` writes ``retry.wasm`` to the folder. Needs uv, which
downloads componentize-py unless its cache has it. Exit statuses: 0 if the component is built, 1 if a tool fails or is
missing, or the folder cannot be created, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOL = ("uvx", "--quiet", "--from", "componentize-py==0.25.1", "componentize-py", "-d", HERE / "retry.wit")


def main(arguments: list[str] | None = None) -> int:
    """Build the component, and return the exit status."""
    parser = argparse.ArgumentParser(description="Build the component of the retry rules.")
    parser.add_argument("folder", type=Path, help="folder for retry.wasm")
    folder: Path = parser.parse_args(arguments).folder
    # With stubs, the component imports nothing: the rules use no clock, no randomness and no files.
    options = ("--stub-wasi", "-p", HERE, "-p", HERE.parents[1], "-o", folder / "retry.wasm")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run((*TOOL, "-w", "retry", "componentize", "adapter", *options), check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the component cannot be built in {folder}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
