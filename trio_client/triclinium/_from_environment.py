"""A cluster that environment variables configure."""

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
    """Give the block the cluster that variables such as ``TRICLINIUM_CONNECTION_STRING`` name, as ``open_cluster`` does.

    Nothing else reads the environment: ``open_cluster`` is configured by its arguments alone. What the variables say is
    laid over the arguments, first ``TRICLINIUM_PROFILE`` and then the others; the options of the connection string are
    laid over both.

    Args:
        environ: ``os.environ``, or any mapping; variables that do not begin with ``TRICLINIUM_`` are left alone.
        authenticator: who signs in where no variable says so.
        arguments: those of ``open_cluster`` that are given by name.

    Raises:
        InvalidArgumentException: a variable is unknown, missing or malformed, and is named; no error shows a secret. Or
            an argument is wrong.
        InternalError: on leaving: a background task crashed, which had cancelled the block.

    Cancellation: as of ``open_cluster``.
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
    # A tracer or a meter of the program's own is no option of the core, and stays unless a variable says otherwise.
    said = found.options.get(ClientOptions, {})
    read |= {name: said[name] for name in ("tracer", "meter") if name in said}
    return open_cluster(
        options.connection_string, options.authenticator, **cast("ClusterArguments", {**arguments, **read})
    )
