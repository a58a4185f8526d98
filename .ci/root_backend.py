"""Build backend of the repository's root, which is no distribution: each build ends with the command to use instead."""

from __future__ import annotations

from typing import NoReturn

INSTEAD = (
    "the root of this repository is a workspace, not a distribution. Build its three distributions with "
    "`uv build --all-packages`, or one with `uv build core`, `uv build trio_client` or `uv build c_ext`; install "
    "the client with `pip install ./core ./trio_client`"
)


def _refuse(*_arguments: object, **_options: object) -> NoReturn:
    raise SystemExit(INSTEAD)


build_sdist = build_wheel = build_editable = _refuse
