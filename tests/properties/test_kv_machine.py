"""Whatever happens between a client and its node, the client keeps the laws of ``KVStateMachine``."""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import initialize, invariant, rule

from triclinium_core.contract.couchbase import AuthenticatorChanged
from triclinium_core.kv.operation.document_operations import GetAndLock
from triclinium_core.options import Authenticator, JwtAuthenticator, PasswordAuthenticator
from triclinium_core.testing.state_machine import KVStateMachine, TokenStateMachine

PASSWORD = PasswordAuthenticator("Administrator", "password")
TOKEN = JwtAuthenticator("a.b.c", allow_unencrypted=True)
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


class ChangedCredentials(KVStateMachine):
    """Live connections authenticate again at any moment, and no operation pays for it."""

    @initialize()
    def knows_tokens(self) -> None:
        """Let the node accept a token beside its password."""
        self.simulation.nodes.set_credentials(tokens=[TOKEN.token])

    @rule(authenticator=st.sampled_from((PASSWORD, TOKEN)))
    def change_authenticator(self, authenticator: Authenticator) -> None:
        """Sign in anew, in one step or in two."""
        self._changes = getattr(self, "_changes", 0) + 1
        self.simulation.feed(AuthenticatorChanged(authenticator, f"nonce-of-change-{self._changes:08}-"))


TestKV = KVStateMachine.TestCase
TestKV.settings = settings(max_examples=2 * EXAMPLES, stateful_step_count=40)

TestTokens = TokenStateMachine.TestCase
TestTokens.settings = settings(max_examples=EXAMPLES // 4, stateful_step_count=40)

TestLockedDocuments = LockedDocuments.TestCase
TestLockedDocuments.settings = settings(max_examples=EXAMPLES // 2, stateful_step_count=40)

TestChangedCredentials = ChangedCredentials.TestCase
TestChangedCredentials.settings = settings(max_examples=EXAMPLES // 2, stateful_step_count=40)
