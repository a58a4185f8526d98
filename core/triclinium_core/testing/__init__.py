"""A node or a cluster inside the process, faults as values, and properties to hold a client against: public and documented.

The properties need Hypothesis, the extra ``testing``, and are imported by the name of their module::

    from triclinium_core.testing.state_machine import KVStateMachine
"""

from triclinium_core.testing.fakes.cluster.command_log import LoggedCommand as LoggedCommand
from triclinium_core.testing.fakes.cluster.node import FakeNode as FakeNode
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes as FakeNodes
from triclinium_core.testing.fakes.cluster.outbox import (
    HangUp as HangUp,
    NodeAction as NodeAction,
    SendReply as SendReply,
)
from triclinium_core.testing.fakes.commands.index import DATA_OPCODES as DATA_OPCODES
from triclinium_core.testing.fakes.error_map import (
    ERROR_MAP as ERROR_MAP,
    ErrorMapDocument as ErrorMapDocument,
    ErrorMapRow as ErrorMapRow,
)
from triclinium_core.testing.fakes.faults import (
    CommandFault as CommandFault,
    Fault as Fault,
    FaultAfterApplying as FaultAfterApplying,
    FaultBeforeApplying as FaultBeforeApplying,
    Faults as Faults,
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
from triclinium_core.testing.fakes.options import (
    IMPLEMENTED_FEATURES as IMPLEMENTED_FEATURES,
    FakeNodeOptions as FakeNodeOptions,
)
from triclinium_core.testing.fakes.store.cluster_map import (
    NO_NODE as NO_NODE,
    ConfigVersion as ConfigVersion,
    FakeMap as FakeMap,
)
from triclinium_core.testing.fakes.store.collections import FakeCollections as FakeCollections
from triclinium_core.testing.fakes.store.documents import (
    LOCKED_CAS as LOCKED_CAS,
    Document as Document,
    FakeDocuments as FakeDocuments,
)
