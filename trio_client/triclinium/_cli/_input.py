"""Parsers of command-line values: names, with suggestions for mistakes, and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

import click

from triclinium_core.options import SECONDS_MAX

T = TypeVar("T")

LISTED_MAX = 12
"""Maximum number of choices in an error message: more do not fit on one line."""
HELP_LISTS_THEM = "--help lists them"


class WrongInput(click.ClickException):
    """Error on the command line, or in a file that it names. The command prints one line and exits with status 2."""

    exit_code = 2


def choose(name: str, choices: Mapping[str, T], what: str) -> T:
    """Return the choice whose name matches ``name``. The rules and the exceptions are those of ``choose_name``."""
    return choices[choose_name(name, choices, what)]


def choose_name(name: str, names: Iterable[str], what: str, *, otherwise: str = HELP_LISTS_THEM) -> str:
    """Return the name in ``names`` that matches ``name``. Case and outer spaces are ignored, and ``-`` matches ``_``.

    Args:
        what: kind of thing that has the name, for the error.
        otherwise: next step to show if no choice resembles ``name`` and there are too many choices to list.

    Raises:
        WrongInput: no name matches; the message ends with the text of ``suggestion``.
    """
    known = {_canonical(each): each for each in names}
    found = known.get(_canonical(name))
    if found is None:
        raise WrongInput(f"unknown {what}: {name!r}{suggestion(name, known.values(), otherwise)}")
    return found


def suggestion(name: str, choices: Iterable[str], otherwise: str = HELP_LISTS_THEM) -> str:
    """Return the end of an error line: choices that resemble ``name``, else all choices if few, else ``otherwise``."""
    keys = {_canonical(key): key for key in choices}
    meant = [keys[match] for match in get_close_matches(_canonical(name), keys, n=2)]
    if meant:
        return f"; did you mean {' or '.join(meant)}?"
    if len(keys) <= LISTED_MAX:
        return f"; choose from {', '.join(keys.values())}"
    return f"; {otherwise}"


def spelled(option: str) -> str:
    """Return an option as the user types it."""
    return f"--{option.replace('_', '-')}"


def _canonical(name: str) -> str:
    return name.strip().casefold().replace("-", "_")


class WholeNumber(click.IntRange):
    """Whole number in a range. The error for another number gives the range."""

    name = "whole number"


class DurationParameter(click.FloatRange):
    """Number of at least 0, or more than 0 with ``min_open``, and at most ``SECONDS_MAX`` seconds. NaN is refused.

    Args:
        endless: whether ``inf`` is allowed.
        unit: number of seconds that the number 1 stands for.
    """

    name = "number"

    def __init__(self, *, min_open: bool = False, endless: bool = True, unit: float = 1.0) -> None:
        super().__init__(min=0, min_open=min_open)
        self._endless = endless
        self._most = SECONDS_MAX / unit

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number.

        Raises:
            click.BadParameter: the value is not a number, or is out of range.
        """
        number = float(super().convert(value, param, ctx))
        if math.isnan(number) or (math.isinf(number) and not self._endless):
            self.fail(f"{number} is not a{'' if self._endless else ' finite'} number.", param, ctx)
        if self._most < number < math.inf:
            self.fail(f"{number:g} is more than {self._most:g}.", param, ctx)
        return number
