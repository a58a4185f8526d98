"""Plans for the bootstraps of new streams.

Source: SDK-RFC 0035 "Client / Connection IDs"; SDK-RFC 0075 "Get Cluster Config with Known Version".
"""

from __future__ import annotations

import hashlib

from triclinium_core.kv.topology.connection_string import ConnectionString, Scheme
from triclinium_core.options import ClientOptions
from triclinium_core.retry.backoff import Random
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapPlan, plan_of
from triclinium_core.runtime.kv.connection.connection import Connection
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.kv.pool.authentication import Authentication


class Plans:
    """Factory of the bootstrap plans of one client. Each plan contains the random id of the client."""

    def __init__(
        self,
        options: ClientOptions,
        connection_string: ConnectionString,
        authentication: Authentication,
        configs: KnownConfigs,
        rng: Random,
    ) -> None:
        self._options = options
        self._connection_string = connection_string
        self._authentication = authentication
        self._configs = configs
        self._client_id = f"{int(rng.random() * 2**64):016x}"

    def plan_for(self, connection: Connection, nonce: str) -> BootstrapPlan | None:
        """Return the plan for a new stream of a connection; None for a plain memcached, which has no bootstrap."""
        if self._connection_string.scheme is Scheme.MEMCACHED:
            return None
        return plan_of(
            self._options,
            self._authentication.authenticator,
            bucket=connection.bucket,
            xerror=not connection.history.had_corrupt_error_map,
            tls=self._authentication.hides_passwords,
            nonce=nonce,
            known_config=self._configs.settled_version(connection.bucket),
            salted_passwords=self._authentication.salted_passwords,
            connection_id=f"{self._client_id}/{hashlib.sha256(nonce.encode()).hexdigest()[:16]}",
        )
