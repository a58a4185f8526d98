"""How long: the type of options that are durations."""

from __future__ import annotations

import math

import click

from triclinium_core.options import SECONDS_MAX


class Duration(click.FloatRange):
    """A number of at least 0, or more than 0, that no clock runs out of; "not a number" is none.

    Args:
        endless: whether ``inf`` will do.
        unit: what 1 stands for, in seconds.
    """

    name = "number"

    def __init__(self, *, min_open: bool = False, endless: bool = True, unit: float = 1.0) -> None:
        super().__init__(min=0, min_open=min_open)
        self._endless = endless
        self._most = SECONDS_MAX / unit

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number.

        Raises:
            click.BadParameter: it is none, or out of range.
        """
        number = float(super().convert(value, param, ctx))
        if math.isnan(number) or (math.isinf(number) and not self._endless):
            self.fail(f"{number} is not a{'' if self._endless else ' finite'} number.", param, ctx)
        if self._most < number < math.inf:
            self.fail(f"{number:g} is more than {self._most:g}.", param, ctx)
        return number
