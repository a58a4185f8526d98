"""Assignment of vbuckets and replicas to nodes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from triclinium_core.testing.fakes.store import cluster_map

OWNERS = st.lists(st.integers(cluster_map.NO_NODE, 4), min_size=1, max_size=40)
MEMBERS = st.sets(st.integers(0, 5), min_size=1).map(sorted)


@pytest.mark.parametrize(
    ("owners", "members", "expected"),
    [
        ([cluster_map.NO_NODE] * 4, [0, 1], (0, 1, 0, 1)),
        ([0, 0, 0, cluster_map.NO_NODE], [0, 1], (0, 0, 0, 1)),
        ([2, 2, 0, 1], [0, 1], (0, 1, 0, 1)),
        ([0, 0, 0, 0], [0, 1], (0, 0, 0, 0)),
    ],
)
def test_dealt_vbuckets(owners: list[int], members: list[int], expected: tuple[int, ...]) -> None:
    """Vbuckets without a member go to the members with the fewest vbuckets, and the other vbuckets stay."""
    assert expected == cluster_map.dealt(owners, members)


@given(owners=OWNERS, members=MEMBERS)
def test_every_vbucket_is_dealt(owners: list[int], members: list[int]) -> None:
    """After dealing, each vbucket belongs to a member, and vbuckets that belonged to members stay."""
    given_out = cluster_map.dealt(owners, members)

    assert set(given_out) <= set(members)
    assert all(new == old for new, old in zip(given_out, owners, strict=True) if old in members)


@given(owners=OWNERS, members=MEMBERS)
def test_levelled_vbuckets_are_even(owners: list[int], members: list[int]) -> None:
    """Members differ by at most one vbucket, and an even assignment stays as it is."""
    level = cluster_map.levelled(owners, members)
    shares = [level.count(member) for member in members]

    assert set(level) <= set(members)
    assert max(shares) - min(shares) <= 1
    assert level == cluster_map.levelled(level, members)


def test_levelling_moves_only_the_necessary_vbuckets() -> None:
    """A new member gets its share, and no vbucket moves between the other members."""
    level = cluster_map.levelled([0, 0, 0, 1, 1, 1], [0, 1, 2])

    assert Counter({0: 2, 1: 2, 2: 2}) == Counter(level)
    assert all(new in (old, 2) for new, old in zip(level, [0, 0, 0, 1, 1, 1], strict=True))


TWO_REPLICAS = cluster_map.FakeMap(
    cluster_map.ConfigVersion(1, 1),
    (0, 1, 2),
    (0, 1, 2, cluster_map.NO_NODE),
    ((1, 0, cluster_map.NO_NODE, 1), (2, cluster_map.NO_NODE, 0, 2)),
)


@given(owners=OWNERS, members=MEMBERS, replicas=st.integers(0, 3))
def test_replicas_are_dealt_evenly(owners: list[int], members: list[int], replicas: int) -> None:
    """Replicas of a vbucket are on different members if possible; the members share a node's first replicas evenly."""
    known = cluster_map.FakeMap(
        cluster_map.ConfigVersion(1, 1),
        tuple(members),
        tuple(owners),
        cluster_map.dealt_replicas(owners, members, replicas),
    )

    assert replicas == len(known.replicas)
    for vbucket, owner in enumerate(owners):
        holders = known.replica_holders(vbucket)
        assert (min(replicas, len(members) - 1) if owner in members else 0) == len(holders) == len(set(holders))
        assert set(holders) <= set(members) - {owner}
        assert known.chain(vbucket)[1 : 1 + len(holders)] == list(holders)
    for owner in members:
        firsts = (
            Counter(row for row, its in zip(known.replicas[0], owners, strict=True) if its == owner) if replicas else {}
        )
        shares = [firsts[member] for member in members if member != owner] if firsts else [0]
        assert max(shares, default=0) - min(shares, default=0) <= 1


def test_move_to_a_replica_swaps_it() -> None:
    """A move to a replica's node gives the former node the replica; a move to no node keeps all replicas."""
    owners, replicas = cluster_map.moved(TWO_REPLICAS, [0, 1], 2)

    assert [2, 2, 2, cluster_map.NO_NODE] == owners
    assert [[1, 0, cluster_map.NO_NODE, 1], [0, cluster_map.NO_NODE, 0, 2]] == replicas
    owners, replicas = cluster_map.moved(TWO_REPLICAS, [0, 1], cluster_map.NO_NODE)
    assert [cluster_map.NO_NODE, cluster_map.NO_NODE, 2, cluster_map.NO_NODE] == owners
    assert TWO_REPLICAS.replicas == tuple(map(tuple, replicas))


def test_failover_promotes_the_first_replica() -> None:
    """A failover promotes the first replica, and later replicas move up."""
    owners, replicas = cluster_map.failed_over(TWO_REPLICAS, 0)

    assert [1, 1, 2, cluster_map.NO_NODE] == owners
    assert [
        [2, cluster_map.NO_NODE, cluster_map.NO_NODE, 1],
        [cluster_map.NO_NODE, cluster_map.NO_NODE, cluster_map.NO_NODE, 2],
    ] == replicas
