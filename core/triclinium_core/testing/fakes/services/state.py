"""State that the services of a fake cluster share, in addition to documents, buckets and the map."""

from __future__ import annotations

from triclinium_core.testing.fakes.services.management.user_store import FakeUsers
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.search.indexes import FakeSearchIndexes
from triclinium_core.testing.fakes.services.statements.indexes import FakeIndexes
from triclinium_core.testing.fakes.services.statements.plans import FakePlans
from triclinium_core.testing.fakes.services.views.design_documents import FakeDesignDocuments


class ServicesStore:
    """Script of responses, and the stored state of the services."""

    def __init__(self) -> None:
        self.script: FakeScript = FakeScript()
        self.plans: FakePlans = FakePlans()
        self.indexes: FakeIndexes = FakeIndexes()
        self.search_indexes: FakeSearchIndexes = FakeSearchIndexes()
        self.design_documents: FakeDesignDocuments = FakeDesignDocuments()
        self.users: FakeUsers = FakeUsers()
        self._requests = 0

    def new_request_id(self) -> str:
        """Return a new request id; ids count up, so that runs are reproducible."""
        self._requests += 1
        return f"00000000-0000-4000-8000-{self._requests:012x}"
