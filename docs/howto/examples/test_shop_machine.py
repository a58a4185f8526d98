"""A state machine with one rule each for documents, counters, sub-documents and queries: ``pytest test_shop_machine.py``.

Hypothesis mixes these rules with the faults of ``KVStateMachine``, which checks every result.
"""

from __future__ import annotations

from hypothesis import settings, strategies as st
from hypothesis.stateful import rule

from triclinium_core.kv.operation.document_operations import Append, Increment, Upsert
from triclinium_core.kv.operation.subdocument.specs import LookupInSpec
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.testing.state_machine import KVStateMachine


class Shop(KVStateMachine):
    """Customers of a shop, each of whose actions is one request."""

    @rule(key=KVStateMachine.keys, expiry=st.sampled_from((0, 3)))
    def register(self, key: str, expiry: int) -> None:
        """Write a document."""
        self.submit_document(Upsert, key, expiry=expiry)

    @rule(key=KVStateMachine.keys)
    def add_note(self, key: str) -> None:
        """Append to a document."""
        self.submit_document(Append, key)

    @rule(key=KVStateMachine.counters)
    def visit(self, key: str) -> None:
        """Increment a counter, which the first visit creates."""
        self.submit_count(Increment, key)

    @rule(key=KVStateMachine.lists)
    def fill_basket(self, key: str) -> None:
        """Append to the list in a document, which the first call creates."""
        self.submit_list(MutateIn, key)

    @rule(key=KVStateMachine.lists)
    def look_into_basket(self, key: str) -> None:
        """Read the list. A read needs no unique value."""
        self.submit(LookupIn(self.keyspace, key, (LookupInSpec.get("parts"),)))

    @rule(prices=st.lists(st.integers(1, 9), max_size=3))
    def list_prices(self, prices: list[int]) -> None:
        """Query the prices. The reader must get each row once, in order."""
        self.submit_query("SELECT RAW price FROM goods", prices, readonly=True)


TestShop = Shop.TestCase
TestShop.settings = settings(TestShop.settings, max_examples=20, stateful_step_count=20)
