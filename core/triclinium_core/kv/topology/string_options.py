"""The options of a connection string's query part: what each sets, and how its text is read.

Source: SDK-RFC 0011 "General Design"; the names are those that the Couchbase clients share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.options import ClientOptions, TimeoutOptions, check_seconds

FLAGS: Mapping[str, bool] = {"true": True, "false": False}


def _seconds(text: str) -> float:
    value = float(text)
    try:
        check_seconds(value, "value")
    except InvalidArgumentException as error:
        raise ValueError(text) from error
    return value


def _flag(text: str) -> bool:
    if text not in FLAGS:
        raise ValueError(text)
    return FLAGS[text]


def _name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


@dataclass(frozen=True, slots=True)
class StringOption:
    """One option.

    Args:
        group: the class of options that it belongs to.
        field: which of them it sets.
        read: makes a value of a text; raises ValueError for one that means nothing.
        wanted: what the text has to be, in words.
    """

    group: type[TimeoutOptions | ClientOptions]
    field: str
    read: Callable[[str], object] = _seconds
    wanted: str = "a number of seconds > 0"


OPTIONS: Mapping[str, StringOption] = {
    "kv_timeout": StringOption(TimeoutOptions, "kv"),
    "kv_durable_timeout": StringOption(TimeoutOptions, "kv_durable"),
    "kv_scan_timeout": StringOption(TimeoutOptions, "kv_scan"),
    "connect_timeout": StringOption(TimeoutOptions, "connect"),
    "config_poll_interval": StringOption(TimeoutOptions, "config_poll_interval"),
    "config_poll_floor": StringOption(TimeoutOptions, "config_poll_floor"),
    "network": StringOption(ClientOptions, "network", _name, "the name of a network"),
    "enable_dns_srv": StringOption(ClientOptions, "enable_dns_srv", _flag, "true or false"),
}
"""By name."""
