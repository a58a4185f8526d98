"""Options of a command as one class: each field is an option, with its type and its help text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields
from typing import Any

import click

from triclinium._cli._input import WholeNumber, spelled

COUNT: Mapping[str, object] = {"type": WholeNumber(min=0), "metavar": "N"}
"""Settings of an option that is a count."""


def option(*flags: str, **settings: Any) -> Any:
    """Return a field that is an option, created with ``click.option``.

    Args:
        flags: spellings of the option; default: ``--`` and the name of the field.
        settings: further arguments of ``click.option``.
    """
    return field(metadata={"flags": flags, "settings": settings})


def takes(options: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of a class to a command, and passes an instance of it as ``options``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def packed(*args: Any, **given: Any) -> None:
            values = {each.name: given.pop(each.name) for each in fields(options)}
            command(*args, options=options(**values), **given)

        # click shows the docstring as the help. The attributes hold the parameters of the decorators below this one.
        packed.__doc__ = command.__doc__
        packed.__dict__.update(command.__dict__)
        for each in reversed(fields(options)):
            flags = each.metadata["flags"] or (spelled(each.name),)
            packed = click.option(*flags, each.name, **each.metadata["settings"])(packed)
        return packed

    return decorate


def given(options: Any, names: Collection[str]) -> list[str]:
    """Return those of ``names`` that were given as options, in the order of ``--help``."""
    return [each.name for each in fields(options) if each.name in names and getattr(options, each.name) is not None]


def completing(
    names: Callable[[click.Context], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the shell completion of an argument: those of ``names`` that begin with the incomplete word."""
    return lambda ctx, parameter, incomplete: [name for name in names(ctx) if name.startswith(incomplete)]
