"""Parameters of a statement, and raw options that are unknown to triclinium.

Values are encoded immediately, so an invalid value raises, and later changes to a value have no effect. ``repr`` shows
names only.

Source: SDK-RFC 0056 and 0057, ``parameters`` and ``raw``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_text, check_type
from triclinium_core.services.json_values import encode_json
from triclinium_core.shown import total_repr

PREFIX = "$"
"""Prefix of the name of a parameter in a request."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Parameters:
    """Parameters of a statement: positional ones, named ones, or both.

    Args:
        positional: values for ``?`` or ``$1``, ``$2``, in order.
        named: values by name, with or without the ``$``.
        keywords: more values by name.

    Raises:
        InvalidArgumentException: the arguments are not a sequence and mappings, or a name is not a string, is empty, or
            occurs twice.
        EncodingFailureException: a value cannot be encoded as JSON.
    """

    positional: tuple[bytes, ...]
    """JSON texts."""
    named: tuple[tuple[str, bytes], ...]
    """Names with their ``$``, and JSON texts."""

    def __init__(
        self,
        positional: Sequence[object] = (),
        named: Mapping[str, object] | None = None,
        keywords: Mapping[str, object] | None = None,
    ) -> None:
        if isinstance(positional, str | bytes | bytearray) or not isinstance(positional, Sequence):
            raise errors.InvalidArgumentException(
                f"positional parameters must be a list or a tuple, not {type(positional).__name__}",
                parameter="positional_parameters",
            )
        encoded = tuple(encode_json(value, f"parameter ${place}") for place, value in enumerate(positional, 1))
        object.__setattr__(self, "positional", encoded)
        object.__setattr__(self, "named", _encode_named(named, keywords))

    @total_repr
    def __repr__(self) -> str:
        return f"Parameters({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names for errors and logs: ``$1``, ``$2`` for positional parameters, then the named ones."""
        places = (f"{PREFIX}{place}" for place in range(1, len(self.positional) + 1))
        return (*places, *(name for name, _ in self.named))

    def members(self) -> dict[str, object]:
        """Return the members of the request that contain the parameters."""
        members: dict[str, object] = {name: msgspec.Raw(value) for name, value in self.named}
        if self.positional:
            members["args"] = [msgspec.Raw(value) for value in self.positional]
        return members


def _encode_named(
    named: Mapping[str, object] | None, keywords: Mapping[str, object] | None
) -> tuple[tuple[str, bytes], ...]:
    if named is not None:
        check_names(named, "named_parameters")
    if keywords:
        check_names(keywords, "keywords")
    encoded: dict[str, bytes] = {}
    for name, value in (*(named or {}).items(), *(keywords or {}).items()):
        prefixed = PREFIX + name.removeprefix(PREFIX)
        if prefixed == PREFIX:
            raise errors.InvalidArgumentException(
                "a named parameter has no name after its $; name it, or pass the value as a positional parameter",
                parameter="named_parameters",
            )
        if prefixed in encoded:
            raise errors.InvalidArgumentException(
                f"parameter {prefixed} is given twice; keep one", parameter="named_parameters"
            )
        encoded[prefixed] = encode_json(value, f"parameter {prefixed}")
    return tuple(encoded.items())


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RawOptions:
    """Options of the service that are unknown to triclinium, by their names in requests.

    Raises:
        InvalidArgumentException: ``options`` is not a mapping, or a name is not a string or is empty.
        EncodingFailureException: a value cannot be encoded as JSON.
    """

    options: tuple[tuple[str, bytes], ...]
    """Names and JSON texts."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        if options is not None:
            check_names(options, "raw")
        encoded = tuple((name, encode_json(value, f"raw[{name!r}]")) for name, value in (options or {}).items())
        object.__setattr__(self, "options", encoded)

    @total_repr
    def __repr__(self) -> str:
        return f"RawOptions({', '.join(name for name, _ in self.options)})"

    def check_unknown(self, members: Mapping[str, str]) -> None:
        """Raise if an option sets a member of the request that triclinium sets itself.

        Args:
            members: members that triclinium writes, each with what to use instead.

        Raises:
            InvalidArgumentException: an option is one of these members, or a parameter of the statement.
        """
        for name, _ in self.options:
            option = "named_parameters" if name.startswith(PREFIX) else members.get(name)
            if option is not None:
                raise errors.InvalidArgumentException(f"raw[{name!r}] is not allowed; use {option}", parameter="raw")

    def members(self) -> dict[str, object]:
        """Return the members of the request that contain the options."""
        return {name: msgspec.Raw(value) for name, value in self.options}


def check_names(values: object, parameter: str) -> None:
    """Raise InvalidArgumentException unless ``values`` is a mapping whose keys are non-empty strings."""
    check_type(values, parameter, Mapping)
    assert isinstance(values, Mapping)
    for name in values:
        check_text(name, f"a name in {parameter}")


def stands_in(statement: str, name: str) -> bool:
    """Return whether ``$name`` or ``@name`` occurs in a statement, even in a string or comment."""
    return re.search(rf"[$@]{re.escape(name)}(?!\w)", statement) is not None


def check_keywords(statement: object, keywords: Collection[str], options: Collection[str]) -> None:
    """Raise if a keyword cannot be a parameter of the statement, because it does not occur in the statement.

    A service ignores a parameter that its statement does not have, so a misspelt option would have no effect.

    Args:
        statement: the statement. If it is not a string, do nothing: the check of the statement reports that.
        keywords: names of the parameters.
        options: names of options, of which a keyword may be a misspelling.

    Raises:
        InvalidArgumentException: neither ``$keyword`` nor ``@keyword`` occurs in the statement.
    """
    if not isinstance(statement, str):
        return
    for keyword in keywords:
        if not stands_in(statement, keyword):
            meant = get_close_matches(keyword, options, n=1)
            hint = f"did you mean the option {meant[0]}?" if meant else "named_parameters= takes any name"
            raise errors.InvalidArgumentException(
                f"{keyword}= is not an option, and ${keyword} is not in the statement; {hint}", parameter=keyword
            )
