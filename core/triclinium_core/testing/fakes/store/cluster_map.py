"""Map of a fake cluster: its nodes, and the vbuckets and replicas of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NO_NODE = -1
"""Stands for the node of a vbucket, or of a replica, that has none."""


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
    replicas: tuple[tuple[int, ...], ...] = ()
    """For the first replica, then for the second and so on: the node of each vbucket's, ``NO_NODE`` for none."""
    forward: tuple[int, ...] = ()
    """What ``owners`` are to become by the rebalance that is announced; empty where none is."""

    def followed_by(self, members: Sequence[int], owners: Sequence[int], replicas: Sequence[Sequence[int]]) -> FakeMap:
        """Return another map, of the next revision."""
        epoch, revision = self.version
        return FakeMap(
            ConfigVersion(epoch, revision + 1), tuple(members), tuple(owners), tuple(tuple(row) for row in replicas)
        )

    def chain(self, vbucket: int) -> list[int]:
        """Return the node of a vbucket and those of its replicas in order, ``NO_NODE`` where there is none."""
        return [self.owners[vbucket], *(row[vbucket] for row in self.replicas)]

    def replica_holders(self, vbucket: int) -> tuple[int, ...]:
        """Return the nodes that have a replica of a vbucket, the first replica's first."""
        return tuple(row[vbucket] for row in self.replicas if row[vbucket] != NO_NODE)


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


def dealt_replicas(owners: Sequence[int], members: Sequence[int], replicas: int) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of all vbuckets, of each as many as there are others, spread evenly; none for one without a node."""
    rows = [[NO_NODE] * len(owners) for _ in range(replicas)]
    turns = dict.fromkeys(members, 0)
    for vbucket, owner in enumerate(owners):
        if owner not in turns:
            continue
        others = [member for member in members if member != owner]
        for rank in range(min(replicas, len(others))):
            rows[rank][vbucket] = others[(turns[owner] + rank) % len(others)]
        turns[owner] += 1
    return tuple(map(tuple, rows))


def moved(known: FakeMap, vbuckets: Iterable[int], to: int) -> tuple[list[int], list[list[int]]]:
    """Return owners and replicas after some vbuckets were given to a node; where it had a replica, the former one has it."""
    owners, replicas = list(known.owners), [list(row) for row in known.replicas]
    for vbucket in vbuckets:
        for row in replicas:
            if row[vbucket] == to != NO_NODE:
                row[vbucket] = owners[vbucket]
        owners[vbucket] = to
    return owners, replicas


def failed_over(
    known: FakeMap, index: int, progress: Callable[[int, int], float] = lambda node, vbucket: math.inf
) -> tuple[list[int], list[list[int]]]:
    """Return owners and replicas without a node: where it stood, those behind it move up.

    ``progress`` tells how far the replica of a vbucket has come at a node: of several, the one that has most takes over.

    Source: ns_server src/mb_map.erl, promotion of replicas; src/failover.erl, the replica that has most goes first.
    """
    owners, *replicas = [[NO_NODE] * len(known.owners) for _ in range(1 + len(known.replicas))]
    for vbucket in range(len(known.owners)):
        owner, *others = known.chain(vbucket)
        chain = [*others, NO_NODE]
        if index in others:
            chain = [owner, *(node for node in others if node != index), NO_NODE]
        elif index != owner:
            chain = [owner, *others]
        elif holders := known.replica_holders(vbucket):
            heir = max(holders, key=lambda node: progress(node, vbucket))
            chain.sort(key=lambda node: node != heir)
        owners[vbucket] = chain[0]
        for row, node in zip(replicas, chain[1:], strict=True):
            row[vbucket] = node
    return owners, replicas
