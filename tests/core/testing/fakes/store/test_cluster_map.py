"""Who has which vbucket, and who gets it next."""

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
def test_dealing(owners: list[int], members: list[int], expected: tuple[int, ...]) -> None:
    """What nobody has goes to who has the fewest, and nothing else moves."""
    assert expected == cluster_map.dealt(owners, members)


@given(owners=OWNERS, members=MEMBERS)
def test_dealing_leaves_none_out(owners: list[int], members: list[int]) -> None:
    """Afterwards every vbucket is with a member, and those that were are where they were."""
    given_out = cluster_map.dealt(owners, members)

    assert set(given_out) <= set(members)
    assert all(new == old for new, old in zip(given_out, owners, strict=True) if old in members)


@given(owners=OWNERS, members=MEMBERS)
def test_levelling_is_even(owners: list[int], members: list[int]) -> None:
    """No member has two more than another, and what is even already stays as it is."""
    level = cluster_map.levelled(owners, members)
    shares = [level.count(member) for member in members]

    assert set(level) <= set(members)
    assert max(shares) - min(shares) <= 1
    assert level == cluster_map.levelled(level, members)


def test_levelling_moves_no_more_than_it_must() -> None:
    """A new member gets its share, and nothing moves between the others."""
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
    """Each is on a member of its own, as many as there can be; the others of a node share its replicas."""
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


def test_moving_to_a_replica_swaps_it() -> None:
    """The former node has the replica then; anything else stays, also where the vbucket is left without a node."""
    owners, replicas = cluster_map.moved(TWO_REPLICAS, [0, 1], 2)

    assert [2, 2, 2, cluster_map.NO_NODE] == owners
    assert [[1, 0, cluster_map.NO_NODE, 1], [0, cluster_map.NO_NODE, 0, 2]] == replicas
    owners, replicas = cluster_map.moved(TWO_REPLICAS, [0, 1], cluster_map.NO_NODE)
    assert [cluster_map.NO_NODE, cluster_map.NO_NODE, 2, cluster_map.NO_NODE] == owners
    assert TWO_REPLICAS.replicas == tuple(map(tuple, replicas))


def test_who_stands_behind_moves_up() -> None:
    """The first replica there is takes over, and no chain has a gap where the node stood."""
    owners, replicas = cluster_map.failed_over(TWO_REPLICAS, 0)

    assert [1, 1, 2, cluster_map.NO_NODE] == owners
    assert [
        [2, cluster_map.NO_NODE, cluster_map.NO_NODE, 1],
        [cluster_map.NO_NODE, cluster_map.NO_NODE, cluster_map.NO_NODE, 2],
    ] == replicas
