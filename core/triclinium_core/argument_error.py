"""The exception for misuse of what is not part of the Couchbase client.

The client's ``InvalidArgumentException`` is a subclass.
"""

from __future__ import annotations

from triclinium_core.shown import printable


class ArgumentError(ValueError):
    """An argument is of the wrong type or out of range; nothing was done.

    It is raised by what serves anybody: retries of any function and of HTTP, Smithy's strategies, Cassandra's policies.

    Args:
        parameter: name of the offending parameter.
    """

    def __init__(self, message: str = "", *, parameter: str = "") -> None:
        super().__init__(printable(message))
        self.parameter: str = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, {"parameter": self.parameter}
