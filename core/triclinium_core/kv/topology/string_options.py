"""Options in the query part of a connection string: the field that each option sets, and the parser of its value.

Source: SDK-RFC 0011 "General Design". Many of the names are those of other Couchbase clients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction

from triclinium_core import errors
from triclinium_core.options import ClientOptions, TimeoutOptions, require_domains, require_timeout

FLAGS: Mapping[str, bool] = {"true": True, "false": False}
ENDLESS = "inf"

UNITS: Mapping[str, Fraction] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "\N{MICRO SIGN}s": Fraction(1, 10**6),
    "\N{GREEK SMALL LETTER MU}s": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
"""Seconds in each unit of time that the core of the official clients accepts."""

A_DURATION = "a duration > 0 with its unit, at most 1000000000s, such as 2.5s, 500ms or 1m30s, or inf"
A_FLAG = "true or false"
A_LIST_OF_DOMAINS = "one or more domain names, separated by commas"
A_NETWORK = "the name of a network"

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_PART = re.compile(rf"({_NUMBER.pattern})({'|'.join(UNITS)})")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")


def read_seconds(text: str) -> float:
    """Return the number of seconds in a duration with a unit, such as ``10s``; infinity for ``inf``.

    Raises:
        ValueError: ``text`` is not a valid duration. The message continues a sentence that starts with ``text``.
    """
    if text == ENDLESS:
        return math.inf
    if _NUMBER.fullmatch(text):
        # Decision D8: other clients read a number as milliseconds. As seconds, their 10000 would be almost three hours.
        raise ValueError(
            f"has no unit, and other Couchbase clients assume milliseconds; write {text[:20]}ms or {text[:20]}s"
        )
    if not _DURATION.fullmatch(text):
        raise ValueError(f"is not {A_DURATION}")
    try:
        seconds = float(sum(Fraction(number) * UNITS[unit] for number, unit in _PART.findall(text)))
        return require_timeout("value", seconds)
    except (ValueError, OverflowError, errors.InvalidArgumentException) as error:
        raise ValueError(f"is not {A_DURATION}") from error


def read_flag(text: str) -> bool:
    """Return the boolean that ``text`` stands for.

    Raises:
        ValueError: ``text`` is not a boolean. The message continues a sentence that starts with ``text``.
    """
    if text not in FLAGS:
        raise ValueError(f"is not {A_FLAG}")
    return FLAGS[text]


def read_name(text: str) -> str:
    """Return the name of a network.

    Raises:
        ValueError: ``text`` is empty. The message continues a sentence that starts with ``text``.
    """
    if not text:
        raise ValueError(f"is not {A_NETWORK}")
    return text


def read_domains(text: str) -> tuple[str, ...]:
    """Return the domains in a comma-separated list.

    Raises:
        ValueError: an entry is not a domain. The message continues a sentence that starts with ``text``.
    """
    try:
        return require_domains("value", text.split(","))
    except errors.InvalidArgumentException as error:
        raise ValueError(f"is not {A_LIST_OF_DOMAINS}") from error


@dataclass(frozen=True, slots=True)
class StringOption:
    """Option in connection strings.

    Args:
        group: class of options that has ``field``.
        field: field of ``group`` that the option sets.
        read: parser of the value. For an invalid value, it raises ValueError with the reason.
        wanted: description of valid values.
    """

    group: type[TimeoutOptions | ClientOptions]
    field: str
    read: Callable[[str], object] = read_seconds
    wanted: str = A_DURATION


def name_of_timeout(field: str) -> str:
    """Return the option name for a ``TimeoutOptions`` field. Environment variables end with this name in upper case."""
    return field if field.endswith(("_interval", "_floor")) else f"{field}_timeout"


OPTIONS: Mapping[str, StringOption] = {
    **{name_of_timeout(each.name): StringOption(TimeoutOptions, each.name) for each in fields(TimeoutOptions)},
    "network": StringOption(ClientOptions, "network", read_name, A_NETWORK),
    "enable_dns_srv": StringOption(ClientOptions, "enable_dns_srv", read_flag, A_FLAG),
    "dns_srv_domains": StringOption(ClientOptions, "dns_srv_domains", read_domains, A_LIST_OF_DOMAINS),
}
"""All options by name. Connection strings have no options for the circuit breaker (decision D10)."""
