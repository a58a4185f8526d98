"""Rules for the settings of buckets in requests, by the storage of the bucket.

Unknown settings are ignored, as the server ignores them.

Source: ns_server of version 7.6, "menelaus_web_buckets"; Couchbase Server documentation, "Creating and Editing
Buckets".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from triclinium_core.kv.operation.validation import REPLICAS_MAX, UINT64_MAX
from triclinium_core.testing.fakes.services.fake_request import integer_of
from triclinium_core.testing.fakes.store.buckets import (
    COUCHBASE,
    EPHEMERAL,
    MEMCACHED,
    STORAGE_BACKENDS,
    FakeBucket,
    StorageMode,
    storage_mode,
    with_defaults,
)

RAM_QUOTA_MIN: Mapping[StorageMode, int] = {
    StorageMode.COUCHSTORE: 100,
    StorageMode.MAGMA: 1024,
    StorageMode.EPHEMERAL: 100,
    StorageMode.MEMCACHED: 64,
}
"""Minimum quota of a bucket on each node, in MiB."""
RAM_QUOTA_MAX = 1 << 30
"""Maximum quota in MiB that the fake accepts; a server refuses more than the memory of its nodes."""
HISTORY_BYTES_MIN = 2 * 1024**3
"""Minimum size of the history of a bucket in bytes, except for 0, which keeps none."""
EXPIRY_MAX = 2**31 - 1
"""Maximum ``maxTTL`` of a bucket or a collection, in seconds."""

_TYPES: Mapping[str, str] = {"couchbase": COUCHBASE, COUCHBASE: COUCHBASE, EPHEMERAL: EPHEMERAL, MEMCACHED: MEMCACHED}
"""Types of buckets as clients name them, with their names in configs."""

Rule = Callable[[str], str | None]
"""Function that returns the reason why a value is refused, or None if it is valid."""


class Checked(NamedTuple):
    """Settings in a request after the check; they are valid only if there are no errors."""

    settings: Mapping[str, str]
    errors: Mapping[str, str]
    """Reasons of refusal by the name of the setting."""


def _one_of(*values: str) -> Rule:
    return lambda value: None if value in values else f"must be one of {', '.join(values)}; it is {value!r}"


def _between(least: int, most: int) -> Rule:
    text = f"must be an integer between {least} and {most}, inclusive"
    return lambda value: None if integer_of(value, least, most) is not None else f"{text}; it is {value!r}"


def _history_size(value: str) -> str | None:
    return None if value == "0" else _between(HISTORY_BYTES_MIN, UINT64_MAX)(value)


_SWITCH, _WORD = _one_of("0", "1"), _one_of("true", "false")

_FOR_ALL: Mapping[str, Rule] = {"flushEnabled": _SWITCH}
_FOR_DOCUMENTS: Mapping[str, Rule] = {
    **_FOR_ALL,
    "replicaNumber": _between(0, REPLICAS_MAX),
    "maxTTL": _between(0, EXPIRY_MAX),
    "compressionMode": _one_of("off", "passive", "active"),
    "threadsNumber": _between(2, 8),
    "rank": _between(0, 1000),
}
_ON_DISK: Mapping[str, Rule] = {
    **_FOR_DOCUMENTS,
    "evictionPolicy": _one_of("valueOnly", "fullEviction"),
    "durabilityMinLevel": _one_of("none", "majority", "majorityAndPersistActive", "persistToMajority"),
}
_OF_MAGMA: Mapping[str, Rule] = {
    "historyRetentionSeconds": _between(0, UINT64_MAX),
    "historyRetentionBytes": _history_size,
    "historyRetentionCollectionDefault": _WORD,
    "storageQuotaPercentage": _between(1, 85),
    "magmaKeyTreeDataBlockSize": _between(4096, 131_072),
    "magmaSeqTreeDataBlockSize": _between(4096, 131_072),
}
"""Settings that only the Magma storage has. Memcached buckets ignore them; all other buckets refuse them."""

RULES: Mapping[StorageMode, Mapping[str, Rule]] = {
    StorageMode.COUCHSTORE: {**_ON_DISK, "replicaIndex": _SWITCH},
    StorageMode.MAGMA: {**_ON_DISK, **_OF_MAGMA, "replicaIndex": _SWITCH},
    StorageMode.EPHEMERAL: {
        **_FOR_DOCUMENTS,
        "evictionPolicy": _one_of("noEviction", "nruEviction"),
        "durabilityMinLevel": _one_of("none", "majority"),
    },
    StorageMode.MEMCACHED: _FOR_ALL,
}
"""Rules of the settings that a bucket can have, by its storage."""

_REFUSED: Mapping[StorageMode, Mapping[str, str]] = {
    StorageMode.COUCHSTORE: dict.fromkeys(_OF_MAGMA, "is a setting of buckets with the storage backend magma only"),
    StorageMode.MAGMA: {},
    StorageMode.EPHEMERAL: {
        **dict.fromkeys(_OF_MAGMA, "is a setting of buckets with the storage backend magma only"),
        "replicaIndex": "is not supported for ephemeral buckets",
    },
    StorageMode.MEMCACHED: {"replicaNumber": "is not valid for memcached buckets"},
}
"""Settings whose mere presence is refused, with the reason."""

_ERROR_FIELDS: Mapping[str, str] = {"durabilityMinLevel": "durability_min_level"}
"""Names of settings in the server's refusals, if they differ."""


def checked_for_new(form: Mapping[str, str], data_nodes: int) -> Checked:
    """Check the settings of a new bucket, and complete them with the server's defaults.

    Args:
        data_nodes: number of nodes with the key-value service.
    """
    kind = _TYPES.get(form.get("bucketType", COUCHBASE))
    if kind is None:
        return Checked({}, {"bucketType": f"must be one of {', '.join(_TYPES)}; it is {form['bucketType']!r}"})
    backend = form.get("storageBackend", StorageMode.COUCHSTORE)
    if kind == COUCHBASE and backend not in STORAGE_BACKENDS:
        return Checked({}, {"storage_mode": f"storage backend must be couchstore or magma; it is {backend!r}"})
    identity = {"bucketType": kind, **({"storageBackend": backend} if kind == COUCHBASE else {})}
    mode = storage_mode(identity)
    given, errors = _checked(form, mode)
    if mode is not StorageMode.MEMCACHED:
        resolution = form.get("conflictResolutionType", "seqno")
        if resolution == "custom":
            # Clients recognise these words, and report that the feature is not available.
            errors["conflictResolutionType"] = "type 'custom' is supported only with developer preview enabled"
        elif resolution not in ("seqno", "lww"):
            errors["conflictResolutionType"] = f"must be one of seqno, lww, custom; it is {resolution!r}"
        given["conflictResolutionType"] = resolution
        if "numVBuckets" in form:
            errors["numVBuckets"] = "Support for variable number of vbuckets is not enabled"
    quota = _quota(form)
    errors |= _wrong_quota(quota, mode)
    settings = with_defaults({**identity, **given, "ramQuotaMB": quota or "0"})
    return Checked(settings, errors or _wrong_durability(settings, data_nodes))


def checked_for_update(bucket: FakeBucket, form: Mapping[str, str], *, data_nodes: int, vbuckets: int) -> Checked:
    """Check the changed settings of a bucket.

    Args:
        data_nodes: number of nodes with the key-value service.
        vbuckets: number of vbuckets, which cannot change.
    """
    backend = form.get("storageBackend", "")
    migrates = bucket.settings["bucketType"] == COUCHBASE and backend in STORAGE_BACKENDS
    mode = StorageMode(backend) if migrates else bucket.mode
    # replicaIndex is fixed when the bucket is created. In an update, the server ignores it.
    given, errors = _checked({name: value for name, value in form.items() if name != "replicaIndex"}, mode)
    if migrates:
        given["storageBackend"] = backend
    kind = form.get("bucketType")
    if kind is not None and _TYPES.get(kind) != bucket.settings["bucketType"]:
        errors["bucketType"] = "Cannot change bucket type."
    if "conflictResolutionType" in form and mode is not StorageMode.MEMCACHED:
        errors["conflictResolutionType"] = "Conflict resolution type not allowed in update bucket"
    if mode is StorageMode.EPHEMERAL and given.get("evictionPolicy") not in (None, bucket.settings["evictionPolicy"]):
        errors["evictionPolicy"] = "Eviction policy cannot be updated for ephemeral buckets"
    if mode is not StorageMode.MEMCACHED and form.get("numVBuckets") not in (None, str(vbuckets)):
        errors["numVBuckets"] = "Number of vbuckets cannot be modified"
    quota = _quota(form)
    quota = bucket.settings["ramQuotaMB"] if quota is None else quota
    errors |= _wrong_quota(quota, mode)
    if mode is StorageMode.MEMCACHED and quota != bucket.settings["ramQuotaMB"]:
        errors["ramQuota"] = "cannot change quota of memcached buckets"
    given["ramQuotaMB"] = quota
    if not errors and not given.keys().isdisjoint(("durabilityMinLevel", "replicaNumber")):
        errors = _wrong_durability({**bucket.settings, **given}, data_nodes)
    return Checked(given, errors)


def _checked(form: Mapping[str, str], mode: StorageMode) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings in a form that a bucket can have, and the reasons of refusal."""
    given = {name: _canonical(value) for name, value in form.items() if name in RULES[mode]}
    reasons = {name: RULES[mode][name](value) for name, value in given.items()}
    reasons |= {name: reason for name, reason in _REFUSED[mode].items() if name in form}
    errors = {
        _ERROR_FIELDS.get(name, name): f"{name} {reason}" for name, reason in reasons.items() if reason is not None
    }
    return given, errors


def _quota(form: Mapping[str, str]) -> str | None:
    quota = form.get("ramQuota", form.get("ramQuotaMB"))
    return None if quota is None else _canonical(quota)


def _canonical(value: str) -> str:
    """Return the shortest text of an integer, or any other value as it is."""
    number = integer_of(value, -UINT64_MAX, UINT64_MAX)
    return value if number is None else str(number)


def _wrong_quota(quota: str | None, mode: StorageMode) -> dict[str, str]:
    amount = None if quota is None else integer_of(quota, 0, RAM_QUOTA_MAX)
    if amount is None:
        return {"ramQuota": f"The RAM quota must be specified, as an integer up to {RAM_QUOTA_MAX}."}
    if amount < RAM_QUOTA_MIN[mode]:
        return {"ramQuota": f"RAM quota cannot be less than {RAM_QUOTA_MIN[mode]} MiB"}
    return {}


def _wrong_durability(settings: Mapping[str, str], data_nodes: int) -> dict[str, str]:
    """Return the reason why a minimum durability is impossible with the number of replicas and of nodes."""
    replicas, level = int(settings["replicaNumber"]), settings["durabilityMinLevel"]
    if level == "none" or not replicas:
        return {}
    if replicas == REPLICAS_MAX:
        return {"durability_min_level": f"A minimum durability level cannot be combined with {REPLICAS_MAX} replicas"}
    if data_nodes == 1:
        return {"durability_min_level": "You do not have enough data servers to support this durability level"}
    return {}
