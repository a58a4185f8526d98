"""Commands as text: ``get: delay(0.4) x2 at 5 seconds``, ``@1: restart after 1000 requests for 2 seconds``.

For a fault of requests, the part before the colon is the target: a KV command by its name in ``Opcode``, by its number,
or by the operation that uses it; an HTTP service; or ``any`` for every command on a document, which is the default.
``@`` and a number name one node. Then comes the fault, with its arguments in parentheses as in Python. ``x2`` makes it
strike the next two requests, ``always`` every request. If no node is named, each node counts separately.

Commands for nodes can have a node, but neither a target nor a number of times: ``@1: slow_down(0.4)``; ``rebalance``
has no node either.

Conditions follow in any order: ``after 10 requests``, ``at 5 seconds``, ``for 2 seconds``, ``with probability 0.1``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from inspect import signature

from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.control import fields
from triclinium_core.testing.fakes.control.commands import ADD_FAULT, COMMAND_KINDS, Command, CommandKind, read_command
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.control.new_faults import ALWAYS, ANY, faults_of, read_target
from triclinium_core.testing.fakes.fault_names import FAULTS, spelled_call

COMMAND_GRAMMAR = "[TARGET[@NODE]:] FAULT [xTIMES | always] [CONDITION ...]"
"""Human-readable syntax of a fault; a command for a node has ``@NODE:`` before it."""

CONDITION_GRAMMAR = "after N requests, at T seconds, for T seconds, with probability P"
"""Human-readable syntax of the conditions."""

COMMAND_SIZE_MAX = 256 * 1024
"""Maximum size of a command: characters of text, bytes of a line or of the body of a request.

The largest commands contain the body of a response.
"""

# The quantifiers are possessive: backtracking would take cubic time for a long text without a colon.
_FRONT = re.compile(r"\s*+(?P<target>[\w-]*+)\s*+(?:@\s*+(?P<node>\w++))?+\s*+:(?P<rest>.*)", re.DOTALL)
_TIMES = r"x(?P<times>\d+)|(?P<always>always)"
_NUMBER = r"(?!\d*x)[-+\w.]+?"
_CONDITIONS: Mapping[str, str] = {
    fields.AFTER_REQUESTS.name: rf"after\s+(?P<after_requests>{_NUMBER})\s+requests?",
    fields.AT_SECONDS.name: rf"at\s+(?P<at_seconds>{_NUMBER})\s*(?:s|seconds?)",
    fields.FOR_SECONDS.name: rf"for\s+(?P<for_seconds>{_NUMBER})\s*(?:s|seconds?)",
    fields.PROBABILITY.name: r"with\s+probability\s+(?P<probability>[-+\w.]+)",
}
"""Pattern of each condition, by its field."""
_SUFFIX = re.compile(rf"(?P<rest>.*)\s(?:{'|'.join([_TIMES, *_CONDITIONS.values()])})\s*", re.DOTALL)


def read_command_text(text: str) -> Command:
    """Return the command that a text describes; the module's docstring has the syntax.

    Raises:
        InvalidCommand: the text is invalid; the error names the invalid field.
    """
    if len(text) > COMMAND_SIZE_MAX:
        limit = f"at most {COMMAND_SIZE_MAX} characters"
        raise InvalidCommand(f"the command has {len(text)} characters; write {limit}", field="command", allowed=[limit])
    front = _FRONT.fullmatch(text)
    word, node_word, rest = ("", None, text) if front is None else front.group("target", "node", "rest")
    given: dict[str, object] = {} if node_word is None else {fields.NODE.name: _node(node_word)}
    rest = _read_suffixes(rest, given)
    target = read_target(word or ANY)
    name, arguments, named = _call(rest.strip())
    if name in COMMAND_KINDS:
        times = given.get("times")
        superfluous = word or (f"{times}" if times == ALWAYS else f"x{times}" if times else "")
        if superfluous:
            raise InvalidCommand(
                f"{name} applies to nodes or the cluster, not to requests: omit {superfluous!r}",
                field="target" if word else "times",
            )
        given |= _bound_command(COMMAND_KINDS[name], arguments, named)
        return read_command({"command": name, **given})
    if name not in FAULTS:
        # Suggest commands only if no target is named.
        possible = (*faults_of(target), *(() if word else COMMAND_KINDS))
        raise InvalidCommand(f"unknown fault: {name!r}{fields.hint(name, possible)}", field="fault", allowed=possible)
    if word:
        given["target"] = word
    return read_command({"command": ADD_FAULT, "fault": _bound_fault(name, arguments, named), **given})


def spelled_command(name: str) -> str:
    """Return the call syntax of a command with its own fields: ``slow_down(seconds)``, ``restart(keep_data=True)``."""
    own = [field.name for field in _own_fields(COMMAND_KINDS[name])]
    parameters = signature(getattr(FakeNodes, name)).parameters
    arguments = [
        each if parameters[each].default is parameters[each].empty else f"{each}={parameters[each].default!r}"
        for each in own
    ]
    return f"{name}({', '.join(arguments)})" if arguments else name


def _read_suffixes(text: str, given: dict[str, object]) -> str:
    """Move the times and the conditions at the end of a text into ``given``, and return the rest."""
    while (ending := _SUFFIX.fullmatch(text)) is not None:
        text = ending["rest"]
        for name, word in ending.groupdict().items():
            if name == "rest" or word is None:
                continue
            field = "times" if name == "always" else name
            if field in given:
                raise InvalidCommand(f"{field} is given twice: omit one", field=field)
            given[field] = ALWAYS if name == "always" else _number(word, field)
    return text


def _number(word: str, field: str) -> object:
    """Return a number, or the word itself for the check of the field to refuse."""
    try:
        return int(word) if word.isdecimal() and len(word) <= 20 else float(word)
    except ValueError:
        return word


def _node(word: str) -> int:
    if not word.isdecimal() or len(word) > 5:
        raise InvalidCommand(
            f"@{word} is not a node; write a number, @0 for the first",
            field=fields.NODE.name,
            allowed=fields.NODE.allowed,
        )
    return int(word)


def _own_fields(kind: CommandKind) -> Sequence[fields.Field]:
    return [field for field in kind.fields if field not in fields.SPAN]


def _bound_command(kind: CommandKind, given: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments in parentheses by the names of the fields."""
    names = [field.name for field in _own_fields(kind)]
    if len(given) > len(names) or not named.keys() <= set(names[len(given) :]):
        raise InvalidCommand(
            f"{kind.name} has invalid arguments; write {spelled_command(kind.name)}",
            field="command",
            allowed=[spelled_command(kind.name)],
        )
    return {**dict(zip(names, given, strict=False)), **named}


def _bound_fault(kind: str, given: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    try:
        bound = signature(FAULTS[kind]).bind(*given, **named)
    except TypeError as error:
        raise InvalidCommand(
            f"{kind}: {error}; write {spelled_call(kind)}", field="fault", allowed=[spelled_call(kind)]
        ) from error
    return {"kind": kind, **bound.arguments}


def _call(text: str) -> tuple[str, Sequence[object], Mapping[str, object]]:
    """Return the name before the parentheses, and the arguments in them."""
    if re.fullmatch(r"\w+", text):
        return text, (), {}
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        word, _, rest = text.partition(" ")
        if word in COMMAND_KINDS and rest.strip().isdecimal():
            raise InvalidCommand(
                f"{text[:80]!r} names a node after the command; write @{rest.strip()[:5]}: {word}",
                field=fields.NODE.name,
                allowed=[f"@{rest.strip()[:5]}: {word}"],
            )
        raise InvalidCommand(
            f"{text[:80]!r} is neither a fault nor a command; the form of a fault is {COMMAND_GRAMMAR}, for example "
            f"get: delay(0.4) x2; conditions are {CONDITION_GRAMMAR}",
            field="command",
            allowed=[COMMAND_GRAMMAR],
        )
    try:
        given = [ast.literal_eval(value) for value in call.args]
        named = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise InvalidCommand(
            f"an argument of {call.func.id} is not a literal; write a number, text in quotes, True or False",
            field="fault",
            allowed=["a number", "text in quotes", "True", "False"],
        ) from error
    return call.func.id, given, named


def apply_command(nodes: FakeNodes, command: str | Mapping[str, object]) -> None:
    """Carry out a command for fake nodes, now or when its conditions are met.

    Args:
        nodes: the nodes.
        command: text as for ``triclinium serve --fault``, or an object as for its control API.

    Raises:
        InvalidCommand: the command is invalid, or impossible now.
    """
    (read_command_text(command) if isinstance(command, str) else read_command(command)).apply(nodes)
