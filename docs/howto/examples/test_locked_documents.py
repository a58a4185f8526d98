"""A custom law, checked against the core by Hypothesis: ``pytest test_locked_documents.py``."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import invariant, rule

from triclinium_core.kv.operation.document_operations import GetAndLock
from triclinium_core.testing.state_machine import KVStateMachine


class LockedDocuments(KVStateMachine):
    """Only the holder of a lock changes the document."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Lock a document, in addition to the other rules."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def only_the_holder_writes(self) -> None:
        """A locked document has the CAS that its holder received, after every step."""
        for place, lock in self.model.locks.items():
            document = self.document(place)
            assert document is not None
            assert document.cas == lock.cas


TestLockedDocuments = LockedDocuments.TestCase
TestLockedDocuments.settings = settings(TestLockedDocuments.settings, max_examples=20)
