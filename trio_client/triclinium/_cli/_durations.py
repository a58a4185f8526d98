"""How long: the type of options that are durations."""

from __future__ import annotations

import math

import click


class Duration(click.FloatRange):
    """A number of at least 0, or more than 0; "not a number" is none, though it is not less than 0 either.

    Args:
        endless: whether ``inf`` will do.
    """

    name = "number"

    def __init__(self, *, min_open: bool = False, endless: bool = True) -> None:
        super().__init__(min=0, min_open=min_open)
        self._endless = endless

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number.

        Raises:
            click.BadParameter: it is none, or out of range.
        """
        number = float(super().convert(value, param, ctx))
        if math.isnan(number) or (math.isinf(number) and not self._endless):
            self.fail(f"{number} is not a{'' if self._endless else ' finite'} number.", param, ctx)
        return number
