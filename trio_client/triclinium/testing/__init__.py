"""A cluster for tests, inside the process with virtual time or on a port of this machine, and what may go wrong with it.

This is all that the tests of an application need to import; ``triclinium_core.testing`` has more of the node.
"""

from __future__ import annotations

from triclinium._open_cluster import ClientArguments as ClientArguments
from triclinium._retry.watching import retries as retries
from triclinium.testing._fake_cluster import FakeCluster as FakeCluster
from triclinium.testing._memory import FakeConnector as FakeConnector, open_fake_cluster as open_fake_cluster
from triclinium.testing._tcp import open_tcp_cluster as open_tcp_cluster, serve_tcp as serve_tcp
from triclinium_core.kv.wire.constants import Opcode as Opcode
from triclinium_core.testing import (
    FakeNode as FakeNode,
    FakeNodeOptions as FakeNodeOptions,
    FakeNodes as FakeNodes,
    Fault as Fault,
    delay as delay,
    drop_response as drop_response,
    garble as garble,
    hang_up as hang_up,
    hang_up_after_applying as hang_up_after_applying,
    hang_up_mid_reply as hang_up_mid_reply,
    locked as locked,
    not_my_vbucket as not_my_vbucket,
    refuse_connection as refuse_connection,
    status as status,
    temporary_failure as temporary_failure,
    wrong_length as wrong_length,
)
