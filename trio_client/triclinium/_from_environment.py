"""Cluster that environment variables configure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Unpack, cast

from triclinium._cluster import Cluster
from triclinium._open_cluster import ClusterArguments, CoreArguments, open_cluster
from triclinium_core.environment import read_environment
from triclinium_core.options import Authenticator, ClientOptions


def open_cluster_from_environment(
    environ: Mapping[str, str],
    authenticator: Authenticator | None = None,
    **arguments: Unpack[ClusterArguments],
) -> AbstractAsyncContextManager[Cluster]:
    """Open a cluster like ``open_cluster``, with variables such as ``TRICLINIUM_CONNECTION_STRING``.

    ``open_cluster`` reads no such variables. Variables override the arguments: first ``TRICLINIUM_PROFILE``, then all
    other variables. The options of the connection string override both.

    Args:
        environ: ``os.environ``, or any mapping; variables that do not begin with ``TRICLINIUM_`` are ignored.
        authenticator: credentials to use unless a variable sets them. None, the default, if variables set them.
        arguments: the keyword arguments of ``open_cluster``.

    Raises:
        InvalidArgumentException: a variable, which the error names, is unknown, missing or malformed, or an argument is
            wrong. No error shows a secret.
        InternalError: on leaving: a background task crashed and cancelled the block.

    Cancellation: as in ``open_cluster``.
    """
    found = read_environment(environ)
    of_the_core = {name: value for name, value in arguments.items() if name in CoreArguments.__annotations__}
    given = ClientOptions(
        connection_string=found.connection_string,
        authenticator=authenticator,
        **cast("CoreArguments", of_the_core),
    )
    options = found.over(given)
    read = {name: getattr(options, name) for name in CoreArguments.__annotations__}
    # The core's options hold no tracer or meter of the user: keep the given one unless a variable overrides it.
    from_variables = found.options.get(ClientOptions, {})
    read |= {name: from_variables[name] for name in ("tracer", "meter") if name in from_variables}
    return open_cluster(
        options.connection_string, options.authenticator, **cast("ClusterArguments", {**arguments, **read})
    )
