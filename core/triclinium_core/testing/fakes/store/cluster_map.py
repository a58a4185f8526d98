"""Map of a fake cluster: its nodes, and the vbuckets and replicas of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NO_NODE = -1
"""Placeholder for the node of a vbucket or replica that no node has."""


class ConfigVersion(NamedTuple):
    """Version of a config. A version with a higher epoch is newer; within an epoch, one with a higher revision."""

    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class FakeMap:
    """One version of the map. Nodes are identified by their index in ``FakeNodes``."""

    version: ConfigVersion
    members: tuple[int, ...]
    """Member nodes, in the order in which configs list them."""
    owners: tuple[int, ...]
    """Node of each vbucket, ``NO_NODE`` if unassigned."""
    replicas: tuple[tuple[int, ...], ...] = ()
    """For each replica number, the node of each vbucket's replica; ``NO_NODE`` if there is no such replica."""
    forward: tuple[int, ...] = ()
    """Owners after the announced rebalance; empty without one."""

    def followed_by(self, members: Sequence[int], owners: Sequence[int], replicas: Sequence[Sequence[int]]) -> FakeMap:
        """Return a map with these values and the next revision."""
        epoch, revision = self.version
        return FakeMap(
            ConfigVersion(epoch, revision + 1), tuple(members), tuple(owners), tuple(tuple(row) for row in replicas)
        )

    def chain(self, vbucket: int) -> list[int]:
        """Return the node of a vbucket and then the nodes of its replicas, each ``NO_NODE`` if unassigned."""
        return [self.owners[vbucket], *(row[vbucket] for row in self.replicas)]

    def replica_holders(self, vbucket: int) -> tuple[int, ...]:
        """Return the nodes that have a replica of a vbucket, in replica order."""
        return tuple(row[vbucket] for row in self.replicas if row[vbucket] != NO_NODE)


def dealt(owners: Sequence[int], members: Collection[int]) -> tuple[int, ...]:
    """Return the owners after each vbucket without a member is assigned to the member with the fewest vbuckets."""
    shares = {member: sum(owner == member for owner in owners) for member in members}
    given = list(owners)
    for vbucket, owner in enumerate(owners):
        if owner not in shares:
            given[vbucket] = poorest = min(shares, key=shares.__getitem__)
            shares[poorest] += 1
    return tuple(given)


def levelled(owners: Sequence[int], members: Collection[int]) -> tuple[int, ...]:
    """Return the owners after the vbuckets are spread evenly over the members with as few moves as possible."""
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
    """Return evenly spread replicas of all vbuckets: fewer with too few members, none for an unassigned vbucket."""
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
    """Return owners and replicas after vbuckets move to a node; the former owners get that node's replicas."""
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
    """Return owners and replicas without a node: the later entries of each chain move up.

    ``progress`` takes a node and a vbucket, and returns how far the replica has advanced; the most advanced replica
    takes over.

    Source: ns_server src/mb_map.erl, promotion of replicas; src/failover.erl, preference for the most advanced replica.
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
