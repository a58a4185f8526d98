"""What was typed and cannot be understood, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

import click

T = TypeVar("T")

LISTED_MAX = 12
"""A longer list of choices does not belong into one line."""
HELP_LISTS_THEM = "--help lists them"


class WrongInput(click.ClickException):
    """The command line, or what it names, cannot be understood: one line, and exit status 2."""

    exit_code = 2


def choose(name: str, choices: Mapping[str, T], what: str, *, otherwise: str = HELP_LISTS_THEM) -> T:
    """Return the one of ``choices`` that ``name`` stands for; case does not matter, nor does ``-`` for ``_``.

    Args:
        what: what ``name`` is the name of.
        otherwise: the next step where nothing resembles ``name`` and there are many choices.

    Raises:
        WrongInput: it stands for none; the line says which may have been meant.
    """
    keys = {_canonical(key): key for key in choices}
    key = keys.get(_canonical(name))
    if key is None:
        raise WrongInput(f"there is no {what} {name!r}{suggestion(name, choices, otherwise)}")
    return choices[key]


def suggestion(name: str, choices: Iterable[str], otherwise: str = HELP_LISTS_THEM) -> str:
    """Return which of ``choices`` may have been meant, or which there are where they are few, as the end of a line."""
    keys = {_canonical(key): key for key in choices}
    meant = [keys[match] for match in get_close_matches(_canonical(name), keys, n=2)]
    if meant:
        return f"; did you mean {' or '.join(meant)}?"
    if len(keys) <= LISTED_MAX:
        return f"; there is {', '.join(keys.values())}"
    return f"; {otherwise}"


def _canonical(name: str) -> str:
    return name.strip().casefold().replace("-", "_")
