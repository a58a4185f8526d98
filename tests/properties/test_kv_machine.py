"""The client keeps the laws of ``KVStateMachine`` in every history with its node."""

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
"""Number of examples of the profile; the machine runs twice as many, as a history covers more than one value."""


class LockedDocuments(KVStateMachine):
    """State machine: only the lock holder changes a locked document."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Lock a document if it exists."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def only_the_holder_writes(self) -> None:
        """Check that a locked document has the CAS that its holder got."""
        for place, lock in self.model.locks.items():
            document = self.document(place)

            assert document is not None
            assert lock.cas == document.cas


class ChangedCredentials(KVStateMachine):
    """State machine: open connections authenticate again at any moment, and no operation fails because of it."""

    @initialize()
    def knows_tokens(self) -> None:
        """Make the node accept a token and its password."""
        self.simulation.nodes.set_credentials(tokens=[TOKEN.token])

    @rule(authenticator=st.sampled_from((PASSWORD, TOKEN)))
    def change_authenticator(self, authenticator: Authenticator) -> None:
        """Authenticate again, in one step or in two."""
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
