"""Exception for invalid arguments, for the code that does not depend on Couchbase.

The client raises its subclass ``InvalidArgumentException``.
"""

from __future__ import annotations

from triclinium_core.shown import printable


class ArgumentError(ValueError):
    """An argument is of the wrong type or out of range; the call had no effect.

    For example, the functions that retry calls, Smithy's strategies and Cassandra's policies raise it.

    Args:
        message: text of the error.
        parameter: name of the invalid parameter.
    """

    def __init__(self, message: str = "", *, parameter: str = "") -> None:
        super().__init__(printable(message))
        self.parameter: str = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, {"parameter": self.parameter}
