"""State that the services of a fake cluster share, besides documents, buckets and the map."""

from __future__ import annotations

from triclinium_core.testing.fakes.services.management.users import FakeUsers
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.search.indexes import FakeSearchIndexes
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndexes
from triclinium_core.testing.fakes.services.statements.plans import FakePlans
from triclinium_core.testing.fakes.services.views.design_documents import FakeDesignDocuments


class ServicesStore:
    """The script of answers, and what the services were told to keep."""

    def __init__(self) -> None:
        self.script: FakeScript = FakeScript()
        self.plans: FakePlans = FakePlans()
        self.indexes: FakeIndexes = FakeIndexes()
        self.search_indexes: FakeSearchIndexes = FakeSearchIndexes()
        self.design_documents: FakeDesignDocuments = FakeDesignDocuments()
        self.users: FakeUsers = FakeUsers()
        self._requests = 0

    def new_request_id(self) -> str:
        """Return the id of another request; they count up, so that runs repeat."""
        self._requests += 1
        return f"00000000-0000-4000-8000-{self._requests:012x}"
