"""A node or a cluster inside the process, faults as values, and properties to hold a client against: public and documented.

The properties need Hypothesis, the extra ``testing``, and are imported by the name of their module::

    from triclinium_core.testing.state_machine import KVStateMachine
"""

from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.cluster.outbox import (
    HangUp,
    NodeAction,
    SendReply,
)
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES
from triclinium_core.testing.fakes.error_map import (
    ERROR_MAP,
    ErrorMapDocument,
    ErrorMapRow,
)
from triclinium_core.testing.fakes.faults import (
    CommandFault,
    Fault,
    FaultAfterApplying,
    FaultBeforeApplying,
    Faults,
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
from triclinium_core.testing.fakes.options import (
    IMPLEMENTED_FEATURES,
    FakeNodeOptions,
)
from triclinium_core.testing.fakes.store.cluster_map import (
    NO_NODE,
    ConfigVersion,
    FakeMap,
)
from triclinium_core.testing.fakes.store.collections import FakeCollections
from triclinium_core.testing.fakes.store.documents import (
    LOCKED_CAS,
    Document,
    FakeDocuments,
)

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
    "FakeCollections",
    "FakeDocuments",
    "FakeMap",
    "FakeNode",
    "FakeNodeOptions",
    "FakeNodes",
    "Fault",
    "FaultAfterApplying",
    "FaultBeforeApplying",
    "Faults",
    "HangUp",
    "LoggedCommand",
    "NodeAction",
    "SendReply",
    "delay",
    "drop_response",
    "garble",
    "hang_up",
    "hang_up_after_applying",
    "hang_up_mid_reply",
    "locked",
    "not_my_vbucket",
    "refuse_connection",
    "status",
    "temporary_failure",
    "wrong_length",
]
