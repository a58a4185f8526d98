"""A custom property of the core, checked by Hypothesis: ``pytest test_locked_documents.py``."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import invariant, rule

from triclinium_core.kv.operation.document_operations import GetAndLock
from triclinium_core.testing.state_machine import KVStateMachine


class LockedDocuments(KVStateMachine):
    """Test of the property that only the holder of a lock can change the document."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Lock a document. Hypothesis runs this rule in addition to the inherited rules."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def only_the_holder_writes(self) -> None:
        """Check after every step that a locked document has the CAS that the holder of the lock received."""
        for place, lock in self.model.locks.items():
            document = self.document(place)
            assert document is not None
            assert document.cas == lock.cas


TestLockedDocuments = LockedDocuments.TestCase
TestLockedDocuments.settings = settings(TestLockedDocuments.settings, max_examples=20)
