"""Whatever happens between a client and its node, the client keeps the laws of ``KVStateMachine``."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import invariant, rule

from triclinium_core.kv.operation.requests import GetAndLock
from triclinium_core.testing.state_machine import KVStateMachine

EXAMPLES = settings().max_examples
"""Of the profile; a history is worth more than one drawn value, so the machine gets twice as many."""


class LockedDocuments(KVStateMachine):
    """Nobody but the lock holder ever changes a locked document."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Lock a document, if there is one."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def only_the_holder_writes(self) -> None:
        """What is locked has the CAS that its holder was told."""
        for place, lock in self.model.locks.items():
            document = self.document(place)

            assert document is not None
            assert lock.cas == document.cas


TestKV = KVStateMachine.TestCase
TestKV.settings = settings(max_examples=2 * EXAMPLES, stateful_step_count=40)

TestLockedDocuments = LockedDocuments.TestCase
TestLockedDocuments.settings = settings(max_examples=EXAMPLES // 2, stateful_step_count=40)
