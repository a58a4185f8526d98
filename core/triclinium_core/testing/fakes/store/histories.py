"""Histories of the vbuckets of a fake cluster: sequence numbers, and the failover log.

A vbucket has one history until a failover, or until its node restarts without its data. Then it begins a history with
a new UUID, and writes that the new owner did not have are lost, with their sequence numbers.

Source: kv_engine engines/ep/src/failover-table.cc.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

HISTORIES_MAX = 25
"""Maximum number of histories of one vbucket in the failover log; a longer log drops the oldest."""

_UUID_BASE = 0x7C11_0000_0000
_UUID_STEP = 0x1_0000
"""Difference between the UUIDs of successive histories of a vbucket; a bucket has fewer vbuckets."""

History = tuple[str, int]
"""Bucket and vbucket."""


class Histories:
    """Sequence numbers by bucket and vbucket, and UUIDs by vbucket: a vbucket has the same UUID in every bucket."""

    def __init__(self) -> None:
        self._newest: Counter[History] = Counter()
        self._started: Counter[int] = Counter()
        """Number of histories that each vbucket has begun since the first one."""
        self._ended: defaultdict[int, dict[int, Mapping[str, int]]] = defaultdict(dict)
        """For each vbucket, the sequence numbers of the buckets at the end of each former history, by its UUID."""

    def uuid_of(self, vbucket: int) -> int:
        """Return the UUID of the current history of a vbucket."""
        return vbucket_uuid(vbucket) + self._started[vbucket] * _UUID_STEP

    def newest(self, bucket: str, vbucket: int) -> int:
        """Return the sequence number of the newest write in a vbucket; 0 if there was none."""
        return self._newest[bucket, vbucket]

    def advance(self, bucket: str, vbucket: int) -> int:
        """Count a write in a vbucket, and return its sequence number."""
        self._newest[bucket, vbucket] += 1
        return self._newest[bucket, vbucket]

    def end_of(self, bucket: str, vbucket: int, uuid: int) -> int | None:
        """Return the last sequence number of a former history; None if the vbucket has no former history ``uuid``."""
        ended = self._ended[vbucket].get(uuid) if vbucket in self._ended else None
        return None if ended is None else ended.get(bucket, 0)

    def roll_back(self, newest: Mapping[History, int], vbuckets: Collection[int]) -> None:
        """Set the sequence numbers of some vbuckets to those in ``newest``, or else to 0."""
        for history in [history for history in self._newest if history[1] in vbuckets]:
            self._newest[history] = newest.get(history, 0)

    def begin(self, vbuckets: Collection[int]) -> None:
        """Begin a new history in some vbuckets, as a replica that takes over in a failover does."""
        numbers: dict[int, dict[str, int]] = {vbucket: {} for vbucket in vbuckets}
        for (bucket, vbucket), newest in self._newest.items():
            if vbucket in numbers:
                numbers[vbucket][bucket] = newest
        for vbucket, ended in numbers.items():
            log = self._ended[vbucket]
            log[self.uuid_of(vbucket)] = ended
            while len(log) >= HISTORIES_MAX:
                del log[next(iter(log))]
            self._started[vbucket] += 1

    def forget(self, bucket: str) -> None:
        """Discard the sequence numbers of a dropped bucket."""
        for history in [history for history in self._newest if history[0] == bucket]:
            del self._newest[history]


def vbucket_uuid(vbucket: int) -> int:
    """Return the UUID of the first history of a vbucket."""
    return _UUID_BASE + vbucket
