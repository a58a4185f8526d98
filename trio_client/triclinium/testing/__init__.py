"""Fake cluster for tests, with faults on demand. It runs in memory with Trio's clock, or on local ports.

This module has the names that the tests of an application usually need; ``triclinium_core.testing`` has further ones
for details of the node.
"""

from __future__ import annotations

from triclinium._open_cluster import ClientArguments
from triclinium._retry.watching import retries
from triclinium.testing._fake_cluster import FakeCluster
from triclinium.testing._memory import FakeConnector, open_fake_cluster
from triclinium.testing._tcp import open_tcp_cluster, serve_tcp
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import (
    FakeAnswer,
    FakeNode,
    FakeNodeOptions,
    FakeNodes,
    Fault,
    InvalidCommand,
    LoggedChange,
    LoggedRequest,
    answer_twice,
    apply_command,
    close_announced,
    cut_body,
    delay,
    drop_response,
    endless_body,
    endless_headers,
    garble,
    gzipped,
    hang_up,
    hang_up_after_applying,
    hang_up_mid_reply,
    hang_up_mid_request,
    http_status,
    locked,
    not_my_vbucket,
    proxy_page,
    raw_answer,
    redirect,
    refuse_connection,
    status,
    temporary_failure,
    wrong_chunk_size,
    wrong_content_length,
    wrong_length,
)

__all__ = [
    "ClientArguments",
    "FakeAnswer",
    "FakeCluster",
    "FakeConnector",
    "FakeNode",
    "FakeNodeOptions",
    "FakeNodes",
    "Fault",
    "InvalidCommand",
    "LoggedChange",
    "LoggedRequest",
    "Opcode",
    "Service",
    "answer_twice",
    "apply_command",
    "close_announced",
    "cut_body",
    "delay",
    "drop_response",
    "endless_body",
    "endless_headers",
    "garble",
    "gzipped",
    "hang_up",
    "hang_up_after_applying",
    "hang_up_mid_reply",
    "hang_up_mid_request",
    "http_status",
    "locked",
    "not_my_vbucket",
    "open_fake_cluster",
    "open_tcp_cluster",
    "proxy_page",
    "raw_answer",
    "redirect",
    "refuse_connection",
    "retries",
    "serve_tcp",
    "status",
    "temporary_failure",
    "wrong_chunk_size",
    "wrong_content_length",
    "wrong_length",
]
