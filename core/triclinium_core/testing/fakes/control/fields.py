"""Fields of commands: name, meaning and allowed values of each, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from triclinium_core import errors
from triclinium_core.checks import check_duration, check_flag, check_integer, check_number
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.options import SECONDS_MAX
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.options import NODES_MAX


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a command."""

    name: str
    meaning: str
    """Effect of the field, as a sentence for people."""
    allowed: tuple[str, ...]
    """Allowed values, or a description of them."""
    check: Callable[[object, str], object]
    """Function that takes a value and the name of the field, and returns the value; raises
    InvalidArgumentException if it is invalid."""
    is_required: bool = False

    def read(self, value: object) -> object:
        """Check a value of the field, and return it.

        Raises:
            InvalidCommand: the value is invalid.
        """
        try:
            return self.check(value, self.name)
        except errors.InvalidArgumentException as error:
            raise InvalidCommand(error.message, field=self.name, allowed=self.allowed) from error


def _seconds(value: object, name: str) -> float:
    # ``check_duration`` refuses values that are not durations.
    return check_duration(value, name, most=SECONDS_MAX)  # type: ignore[arg-type]


def _positive_seconds(value: object, name: str) -> float:
    return check_duration(value, name, above_zero=True, most=SECONDS_MAX)  # type: ignore[arg-type]


def _probability(value: object, name: str) -> float:
    return check_number(value, name, 0, 1)  # type: ignore[arg-type]


NODE = Field(
    "node",
    "Number of the node; the first is 0. Default: every node, for commands that do not require it.",
    (f"0 to the number of nodes - 1, at most {NODES_MAX - 1}",),
    lambda value, name: check_integer(value, name, 0, NODES_MAX - 1),
)
SECONDS = Field(
    "seconds",
    "The delay in seconds; 0 removes it.",
    (f"a number from 0 to {SECONDS_MAX:g}",),
    _seconds,
    is_required=True,
)
KEEP_DATA = Field("keep_data", "Whether the node still has its data. Default: true.", ("true", "false"), check_flag)
AFTER_REQUESTS = Field(
    "after_requests",
    "Number of requests that come first. Default: 0.",
    (f"a whole number from 0 to {UINT32_MAX}",),
    lambda value, name: check_integer(value, name, 0, UINT32_MAX),
)
AT_SECONDS = Field(
    "at_seconds",
    "Time of the start, in seconds since the address was printed. Default: 0, for immediately.",
    (f"a number from 0 to {SECONDS_MAX:g}",),
    _seconds,
)
FOR_SECONDS = Field(
    "for_seconds",
    "Seconds from the start to the end. Default: no end.",
    (f"a number above 0, at most {SECONDS_MAX:g}",),
    _positive_seconds,
)
PROBABILITY = Field(
    "probability",
    "Probability with which the fault strikes each request. Default: 1.",
    ("a number from 0 to 1",),
    _probability,
)

START = (AFTER_REQUESTS, AT_SECONDS)
SPAN = (*START, FOR_SECONDS)


def indexes_of(count: int, node: int | None) -> Sequence[int]:
    """Return the index of the named node, or those of all nodes if none is named.

    Raises:
        InvalidCommand: the node does not exist.
    """
    if node is None:
        return range(count)
    if node >= count:
        raise InvalidCommand(
            f"node {node} does not exist; the last node is {count - 1}",
            field=NODE.name,
            allowed=map(str, range(count)),
        )
    return [node]


def check_names(given: Iterable[object], fields: Iterable[Field], what: str) -> None:
    """Raise InvalidCommand for a field that the command does not have, or for a required one that is missing."""
    known = {field.name: field for field in fields}
    present = set(given)
    for name in present:
        if name not in known:
            raise InvalidCommand(
                f"{what} has no field {shown(name)}{hint(str(name), known)}", field=str(name), allowed=known
            )
    for field in known.values():
        if field.is_required and field.name not in present:
            raise InvalidCommand(
                f"{what} requires {field.name}: {'; '.join(field.allowed)}", field=field.name, allowed=field.allowed
            )


def hint(word: str, choices: Iterable[str] | Mapping[str, object]) -> str:
    """Return the end of an error line: the choice that resembles a word, and all choices."""
    names = list(choices)
    meant = get_close_matches(word, names, n=1)
    listed = ", ".join(names) or "none"
    return f"; did you mean {meant[0]}? Choose from {listed}" if meant else f"; choose from {listed}"
