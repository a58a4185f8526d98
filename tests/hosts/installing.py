"""Installation of what the hosts need, or the end of a test without it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.environment import missing


def require(what: str, remedy: str, *command: str | Path, cwd: Path | None = None) -> None:
    """End the test as in ``missing`` unless a command succeeds that downloads what is needed."""
    if shutil.which(command[0]) is None:
        missing(str(command[0]), remedy)
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False, cwd=cwd)
    if done.returncode:
        missing(what, f"{remedy}: {done.stderr[-500:]}")


def install_with_npm(what: str, sources: Path, folder: Path) -> None:
    """Copy a folder with a manifest, and install the packages of the manifest in the copy."""
    shutil.copytree(sources, folder, dirs_exist_ok=True)
    command = ("npm", "install", "--no-package-lock", "--silent", "--no-audit", "--no-fund", "--prefer-offline")
    require(what, "install Node.js 20.5 or later with npm, which downloads it", *command, cwd=folder)
