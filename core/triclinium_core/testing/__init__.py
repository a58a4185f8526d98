"""Public test tools for a client, such as an in-process node and cluster, faults as values, and property tests.

The property tests need Hypothesis, which the extra ``testing`` installs. Import them from their own module::

    from triclinium_core.testing.state_machine import KVStateMachine
"""

from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes, NodePort
from triclinium_core.testing.fakes.cluster.outbox import HangUp, NodeAction, SendReply
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.control.command_text import apply_command
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.error_map import ERROR_MAP, ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.fault_conditions import FaultConditions, SpanConditions, StartConditions
from triclinium_core.testing.fakes.fault_table import Faults, PendingFault
from triclinium_core.testing.fakes.faults import (
    CommandFault,
    Fault,
    FaultAfterApplying,
    FaultBeforeApplying,
    ServiceFault,
    ServiceFaultAfterApplying,
    ServiceFaultBeforeApplying,
    delay,
    drop_response,
    garble,
    hang_up,
    hang_up_after_applying,
    hang_up_mid_reply,
    locked,
    not_my_vbucket,
    refuse_connection,
    status,
    temporary_failure,
    wrong_length,
)
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES, FakeNodeOptions
from triclinium_core.testing.fakes.schedule import LoggedChange
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.faults import (
    HttpFault,
    answer_twice,
    close_announced,
    cut_body,
    endless_body,
    endless_headers,
    gzipped,
    hang_up_mid_request,
    http_status,
    proxy_page,
    raw_answer,
    redirect,
    wrong_chunk_size,
    wrong_content_length,
)
from triclinium_core.testing.fakes.services.request_log import LoggedRequest
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.script_file import load_script
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndexes
from triclinium_core.testing.fakes.services.statements.plans import FakePlan, FakePlans
from triclinium_core.testing.fakes.store.cluster_map import NO_NODE, ConfigVersion, FakeMap
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS, Document, FakeDocuments
from triclinium_core.testing.replayed import replayed

__all__ = [
    "DATA_OPCODES",
    "ERROR_MAP",
    "IMPLEMENTED_FEATURES",
    "LOCKED_CAS",
    "NO_NODE",
    "CommandFault",
    "ConfigVersion",
    "Document",
    "ErrorMapDocument",
    "ErrorMapRow",
    "FakeAnswer",
    "FakeCollections",
    "FakeDocuments",
    "FakeIndexes",
    "FakeMap",
    "FakeNode",
    "FakeNodeOptions",
    "FakeNodes",
    "FakePlan",
    "FakePlans",
    "FakeScript",
    "Fault",
    "FaultAfterApplying",
    "FaultBeforeApplying",
    "FaultConditions",
    "Faults",
    "HangUp",
    "HttpFault",
    "InvalidCommand",
    "LoggedChange",
    "LoggedCommand",
    "LoggedRequest",
    "NodeAction",
    "NodePort",
    "PendingFault",
    "SendReply",
    "ServiceFault",
    "ServiceFaultAfterApplying",
    "ServiceFaultBeforeApplying",
    "SpanConditions",
    "StartConditions",
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
    "load_script",
    "locked",
    "not_my_vbucket",
    "proxy_page",
    "raw_answer",
    "redirect",
    "refuse_connection",
    "replayed",
    "status",
    "temporary_failure",
    "wrong_chunk_size",
    "wrong_content_length",
    "wrong_length",
]
