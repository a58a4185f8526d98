"""Which nodes are in a fake cluster, and which of them has which vbucket.

There are no replicas: a vbucket has one node, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

NO_NODE = -1
"""Stands for the node of a vbucket that has none."""


class ConfigVersion(NamedTuple):
    """Configs are newer by epoch, and within an epoch by revision."""

    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class FakeMap:
    """One version of the map. A node is named by its place in ``FakeNodes``."""

    version: ConfigVersion
    members: tuple[int, ...]
    """The nodes that are in, in the order in which configs name them."""
    owners: tuple[int, ...]
    """The node of each vbucket, ``NO_NODE`` where there is none."""

    def with_version(self, version: ConfigVersion) -> FakeMap:
        """Return the same map under another version."""
        return replace(self, version=version)

    def followed_by(self, members: Sequence[int], owners: Sequence[int]) -> FakeMap:
        """Return another map, of the next revision."""
        epoch, revision = self.version
        return FakeMap(ConfigVersion(epoch, revision + 1), tuple(members), tuple(owners))


def dealt(owners: Sequence[int], members: Collection[int]) -> tuple[int, ...]:
    """Return the owners after each vbucket that no member has was given to the member that has the fewest."""
    shares = {member: sum(owner == member for owner in owners) for member in members}
    given = list(owners)
    for vbucket, owner in enumerate(owners):
        if owner not in shares:
            given[vbucket] = poorest = min(shares, key=shares.__getitem__)
            shares[poorest] += 1
    return tuple(given)


def levelled(owners: Sequence[int], members: Collection[int]) -> tuple[int, ...]:
    """Return the owners after all vbuckets were spread evenly over the members; no more of them move than have to."""
    level = list(dealt(owners, members))
    vbuckets: dict[int, list[int]] = {member: [] for member in members}
    for vbucket, owner in enumerate(level):
        vbuckets[owner].append(vbucket)
    while True:
        richest = max(vbuckets, key=lambda member: len(vbuckets[member]))
        poorest = min(vbuckets, key=lambda member: len(vbuckets[member]))
        if len(vbuckets[richest]) - len(vbuckets[poorest]) <= 1:
            return tuple(level)
        vbucket = vbuckets[richest].pop()
        vbuckets[poorest].append(vbucket)
        level[vbucket] = poorest
