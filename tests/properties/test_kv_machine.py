"""Random histories of a client and its node: each history keeps the invariants of ``KVStateMachine``."""

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
"""Number of examples of the profile. ``TestKV`` runs twice as many, and each of the other machines fewer."""


class LockedDocuments(KVStateMachine):
    """State machine in which only the holder of a lock may change the locked document."""

    @rule(key=KVStateMachine.keys, seconds=st.integers(1, 30))
    def lock(self, key: str, seconds: int) -> None:
        """Submit an operation that locks the document if it exists."""
        self.submit(GetAndLock(self.keyspace, key, seconds))

    @invariant()
    def only_the_holder_writes(self) -> None:
        """Check that a locked document still has the CAS that the holder of the lock got."""
        for place, lock in self.model.locks.items():
            document = self.document(place)

            assert document is not None
            assert lock.cas == document.cas


class ChangedCredentials(KVStateMachine):
    """State machine in which open connections authenticate again at any time, which fails no operation."""

    @initialize()
    def knows_tokens(self) -> None:
        """Set the credentials of the node so that it accepts a token as well as the password."""
        self.simulation.nodes.set_credentials(tokens=[TOKEN.token])

    @rule(authenticator=st.sampled_from((PASSWORD, TOKEN)))
    def change_authenticator(self, authenticator: Authenticator) -> None:
        """Change the authenticator, so that open connections authenticate again in one or two steps."""
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
