"""Assets of the hosts in JavaScript: Pyodide, and the wheels of the core and of its dependencies.

Usage: ``uv run python core/hosts/js/assets.py FOLDER [PACKAGE ...]``. Needs npm and uv, which download what their caches
lack. Does nothing if the folder is up to date. Exit statuses: 0 if the folder is complete, 1 if a tool fails or is
missing, or the folder cannot be written or has contents, but no ``assets.json``, 2 for wrong arguments.

Layout of the folder:

- ``pyodide/``: the files of the npm package ``pyodide``.
- ``wheels/``: wheels for WebAssembly, including those of the given packages.
- ``assets.json``: ``digest`` (of the files that determine the assets), ``pyodide`` (its version), ``wheels`` (names of
  the files to load first), ``snappy`` (name of the wheel that only compressed documents need) and ``errors``
  (exceptions of the client, each with its base, bases first).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[1]
ROOT = CORE.parent

WHEEL_TAGS = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14", "--implementation", "cp")
"""Options of pip for the Python of Pyodide 314."""


def main(arguments: list[str] | None = None) -> int:
    """Collect the assets, and return the exit status."""
    parser = argparse.ArgumentParser(description="Collect Pyodide and the wheels of the core in a folder.")
    parser.add_argument("folder", type=Path, help="folder to create or update")
    parser.add_argument("packages", metavar="PACKAGE", nargs="*", help="further package for the folder of wheels")
    given = parser.parse_args(arguments)
    folder: Path = given.folder
    try:
        collect(folder, given.packages)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the assets for {folder} cannot be collected: {error}", file=sys.stderr)
        return 1
    return 0


def collect(folder: Path, packages: Sequence[str] = ()) -> None:
    """Collect the assets in ``folder``, unless they are up to date.

    Raises:
        OSError: a tool is missing, or ``folder`` cannot be written or has contents, but no ``assets.json``.
        subprocess.CalledProcessError: a tool failed; its messages are on standard error.
    """
    digest = digest_of_inputs(packages)
    record = folder / "assets.json"
    if record.exists():
        if f'"digest": "{digest}"' in record.read_text(encoding="utf-8"):
            return
    elif folder.exists() and any(folder.iterdir()):
        raise OSError(f"{folder} has other contents and no assets.json; choose an empty folder or a new one")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Build next to the target, and replace it at the end, so that a failed tool leaves the folder unchanged.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".assets-") as temporary:
        stage = Path(temporary) / "assets"
        stage.mkdir()
        version = add_pyodide(stage)
        wheels = add_wheels(stage, packages)
        snappy = next(name for name in wheels if name.startswith("cramjam-"))
        contents = {
            "digest": digest,
            "pyodide": version,
            "wheels": [name for name in wheels if name != snappy],
            "snappy": snappy,
            "errors": exceptions(CORE / "triclinium_core" / "errors.py"),
        }
        (stage / "assets.json").write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        stage.rename(folder)


def add_pyodide(stage: Path) -> str:
    """Install the npm package, move its files to ``stage/pyodide``, and return its version."""
    shutil.copy(HERE / "package.json", stage)
    options = ("--no-package-lock", "--silent", "--no-audit", "--no-fund", "--prefer-offline")
    run("npm", "install", *options, "--prefix", str(stage))
    (stage / "node_modules" / "pyodide").rename(stage / "pyodide")
    shutil.rmtree(stage / "node_modules")
    (stage / "package.json").unlink()
    version: str = json.loads((stage / "pyodide" / "package.json").read_text(encoding="utf-8"))["version"]
    return version


def add_wheels(stage: Path, packages: Sequence[str]) -> list[str]:
    """Put the wheels of the core, ``packages`` and all dependencies into ``stage/wheels``, and return their names."""
    wheels = stage / "wheels"
    run("uv", "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(CORE))
    constraints = stage / "constraints.txt"
    constraints.write_text("\n".join(pinned_versions()), encoding="utf-8")
    (core,) = wheels.glob("triclinium_core-*.whl")
    run(
        *("uvx", "--quiet", "pip", "download", "--quiet", "--dest", str(wheels)),
        *("--constraint", str(constraints), "--only-binary=:all:", *WHEEL_TAGS, str(core), *packages),
    )
    constraints.unlink()
    (wheels / ".gitignore").unlink(missing_ok=True)
    return sorted(path.name for path in wheels.glob("*.whl"))


def exceptions(module: Path) -> dict[str, str]:
    """Return each class of ``module``, which defines only exceptions, with its first base."""
    classes = [node for node in ast.parse(module.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    return {each.name: ast.unparse(each.bases[0]) for each in classes}


def pinned_versions() -> list[str]:
    """Return the versions that the project tests together."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned: list[str] = settings["tool"]["uv"]["constraint-dependencies"]
    return pinned


def digest_of_inputs(packages: Sequence[str]) -> str:
    """Return a digest of the packages and of the files in ``inputs``."""
    digest = hashlib.sha256(repr(packages).encode())
    for path in inputs():
        contents = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(contents)}\n".encode() + contents)
    return digest.hexdigest()


def inputs() -> Iterator[Path]:
    """Yield the files that determine the assets."""
    yield from (Path(__file__), HERE / "package.json", ROOT / "pyproject.toml", CORE / "pyproject.toml")
    yield from sorted(path for path in (CORE / "triclinium_core").rglob("*") if path.suffix in {".py", ".typed"})


def run(*command: str) -> None:
    """Run a tool in a subprocess; its output goes to standard error."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
