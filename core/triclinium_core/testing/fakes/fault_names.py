"""Faults by the name of the function that creates them, for files and command lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import IntEnum
from inspect import signature
from types import FunctionType, ModuleType
from typing import get_args

from triclinium_core import errors
from triclinium_core.testing.fakes import faults as common
from triclinium_core.testing.fakes.faults import Fault, ServiceFault
from triclinium_core.testing.fakes.services import faults as http

_KINDS = frozenset({"Fault", "HttpFault"})
"""Names of the return types of functions that create faults."""


def _makers(module: ModuleType) -> dict[str, Callable[..., Fault]]:
    """Return the functions of a module that create a fault, according to their annotations."""
    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, FunctionType)
        and found.__module__ == module.__name__
        and found.__annotations__["return"] in _KINDS
    }


FAULTS: Mapping[str, Callable[..., Fault]] = {**_makers(common), **_makers(http)}
"""Functions that create the faults, by name."""

MADE_BY: Mapping[type[Fault], Callable[..., Fault]] = {
    common.DropResponse: common.drop_response,
    common.Delay: common.delay,
    common.AnswerStatus: common.status,
    common.AnswerNotMyVbucket: common.not_my_vbucket,
    common.HangUpBeforeApplying: common.hang_up,
    common.HangUpAfterApplying: common.hang_up_after_applying,
    common.HangUpMidReply: common.hang_up_mid_reply,
    common.Garble: common.garble,
    common.WrongLength: common.wrong_length,
    common.RefuseConnection: common.refuse_connection,
    http.AnswerHttpStatus: http.http_status,
    http.RawAnswer: http.raw_answer,
    http.EndlessHeaders: http.endless_headers,
    http.EndlessBody: http.endless_body,
    http.HangUpMidRequest: http.hang_up_mid_request,
    http.CutBody: http.cut_body,
    http.WrongContentLength: http.wrong_content_length,
    http.WrongChunkSize: http.wrong_chunk_size,
    http.Gzipped: http.gzipped,
    http.CloseAnnounced: http.close_announced,
    http.AnswerTwice: http.answer_twice,
}
"""For each class of faults, a function that can create all values of the class, with the fields as parameters.

The other functions have fewer parameters, and each creates only some values.
"""

REFUSAL = common.refuse_connection.__name__
"""Name of the fault that strikes connections."""
COMMAND_FAULTS = tuple(name for name in _makers(common) if name != REFUSAL)
"""Names of the faults that strike a KV command."""
SERVICE_FAULTS = tuple(
    name
    for name, make in FAULTS.items()
    if name in _makers(http) or any(MADE_BY[kind] is make for kind in get_args(ServiceFault))
)
"""Names of the faults that strike an HTTP request to a service."""


def spelled_call(name: str) -> str:
    """Return the call syntax of a fault with the names of its parameters, such as ``delay(seconds)``."""
    parameters = signature(FAULTS[name]).parameters.values()
    arguments = [each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters]
    return f"{name}({', '.join(arguments)})" if arguments else name


def make_fault(name: str, /, **arguments: object) -> Fault:
    """Return the fault that the function ``name`` of ``FAULTS`` creates; bytes arguments may be strings.

    Raises:
        InvalidArgumentException: the arguments do not fit the function, or have invalid values.
    """
    make = FAULTS[name]
    shape = signature(make)
    try:
        bound = shape.bind(**arguments)
    except TypeError as error:
        raise errors.InvalidArgumentException(
            f"{name}: {error}; write {spelled_call(name)}", parameter="fault"
        ) from error
    for parameter, value in bound.arguments.items():
        if shape.parameters[parameter].annotation == "bytes" and isinstance(value, str):
            try:
                bound.arguments[parameter] = value.encode()
            except UnicodeEncodeError as error:
                raise errors.InvalidArgumentException(
                    f"{parameter} has a lone surrogate, which UTF-8 cannot encode; write bytes or other text",
                    parameter=parameter,
                ) from error
    return make(*bound.args, **bound.kwargs)


def described(fault: Fault) -> dict[str, object]:
    """Return a fault in JSON terms: its ``kind``, and the arguments that differ from the defaults."""
    found: dict[str, object] = {"kind": MADE_BY[type(fault)].__name__}
    for each in fields(fault):
        value = getattr(fault, each.name)
        usual = each.default_factory() if each.default_factory is not MISSING else each.default
        if isinstance(value, bytes):
            value = value.decode(errors="backslashreplace")
        elif isinstance(value, IntEnum):
            value = int(value)
        if value != (usual.decode() if isinstance(usual, bytes) else usual):
            found[each.name] = value
    return found


def spelled(fault: Fault) -> str:
    """Return a fault in the syntax of a command as text: ``delay(seconds=0.4)``."""
    arguments = described(fault)
    kind = arguments.pop("kind")
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{kind}({written})" if written else f"{kind}"
