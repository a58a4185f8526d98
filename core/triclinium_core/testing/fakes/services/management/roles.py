"""Roles of a fake cluster: the roles that exist, their text in requests, and their JSON in responses.

Source: ns_server of version 7.6, "menelaus_roles" and "menelaus_web_rbac"; SDK-RFC 0054, UserManager.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from triclinium_core.testing.fakes.store.buckets import FakeBuckets
from triclinium_core.testing.fakes.store.collections import FakeCollections

_CLUSTER: Mapping[str, str] = {
    "admin": "Full Admin",
    "ro_admin": "Read-Only Admin",
    "security_admin_local": "Local User Security Admin",
    "security_admin_external": "External User Security Admin",
    "cluster_admin": "Cluster Admin",
    "eventing_admin": "Eventing Full Admin",
    "backup_admin": "Backup Full Admin",
    "replication_admin": "XDCR Admin",
    "query_system_catalog": "Query System Catalog",
    "query_external_access": "Query CURL Access",
    "query_manage_global_functions": "Manage Global Functions",
    "query_execute_global_functions": "Execute Global Functions",
    "query_manage_global_external_functions": "Manage Global External Functions",
    "query_execute_global_external_functions": "Execute Global External Functions",
    "analytics_reader": "Analytics Reader",
    "analytics_admin": "Analytics Admin",
    "sync_gateway_dev_ops": "Sync Gateway Dev Ops",
    "external_stats_reader": "External Stats Reader",
}
"""Roles for the whole cluster, with their display names."""

_BUCKET: Mapping[str, str] = {
    "bucket_admin": "Bucket Admin",
    "bucket_full_access": "Application Access",
    "views_admin": "Views Admin",
    "views_reader": "Views Reader",
    "data_backup": "Data Backup & Restore",
    "fts_admin": "Search Admin",
    "replication_target": "XDCR Inbound",
    "analytics_manager": "Analytics Manager",
    "mobile_sync_gateway": "Sync Gateway",
}
"""Roles that are granted for a bucket or for all buckets."""

_SCOPE: Mapping[str, str] = {
    "scope_admin": "Manage Scopes",
    "query_manage_functions": "Manage Scope Functions",
    "query_execute_functions": "Execute Scope Functions",
    "query_manage_external_functions": "Manage Scope External Functions",
    "query_execute_external_functions": "Execute Scope External Functions",
    "query_manage_sequences": "Manage Sequences",
    "query_use_sequences": "Use Sequences",
    "eventing_manage_functions": "Manage Scope Functions",
}
"""Roles that can be limited to a scope."""

_COLLECTION: Mapping[str, str] = {
    "data_reader": "Data Reader",
    "data_writer": "Data Writer",
    "data_dcp_reader": "Data DCP Reader",
    "data_monitoring": "Data Monitor",
    "fts_searcher": "Search Reader",
    "query_select": "Query Select",
    "query_update": "Query Update",
    "query_insert": "Query Insert",
    "query_delete": "Query Delete",
    "query_manage_index": "Query Manage Index",
    "query_use_sequential_scans": "Query Use Sequential Scans",
    "analytics_select": "Analytics Select",
    "sync_gateway_configurator": "Sync Gateway Architect",
    "sync_gateway_app": "Sync Gateway Application",
    "sync_gateway_app_ro": "Sync Gateway Application Read Only",
    "sync_gateway_replicator": "Sync Gateway Replicator",
}
"""Roles that can be limited to a collection."""

_DESCRIPTIONS: Mapping[str, str] = {
    "admin": "May use all cluster features and the web console, and may read and write all data.",
}
"""Descriptions whose words clients look for."""

ANY = "*"
"""Text for all buckets in a request, and for all buckets, scopes or collections in a response."""

PLACES = ("bucket_name", "scope_name", "collection_name")
"""Fields that limit a role. A role has the first zero to three: none for the cluster, all for a collection."""


class RoleDefinition(NamedTuple):
    """A role that can be granted."""

    display_name: str
    places: Sequence[str]
    """Fields of the role, out of ``PLACES``."""


DEFINITIONS: Mapping[str, RoleDefinition] = {
    role: RoleDefinition(display_name, PLACES[:count])
    for count, roles in enumerate((_CLUSTER, _BUCKET, _SCOPE, _COLLECTION))
    for role, display_name in roles.items()
}


class Place(NamedTuple):
    """Bucket, scope or collection to which a role is limited; the number differs if it is created again."""

    name: str
    number: int


class GrantedRole(NamedTuple):
    """Role of a user or group, with a place for each of its fields; None for all buckets, scopes or collections."""

    name: str
    places: tuple[Place | None, ...]

    def described(self) -> dict[str, object]:
        """Return the role as the cluster manager reports it."""
        names = (ANY if place is None else place.name for place in self.places)
        return {"role": self.name, **dict(zip(PLACES, names, strict=False))}

    def is_valid(self, buckets: FakeBuckets) -> bool:
        """Return whether the places of the role still exist."""
        names = [None if place is None else place.name for place in self.places]
        return _resolved(self.name, names, buckets) == self


_TEXT = re.compile(r"(?P<role>[^\[]*)(?:\[(?P<places>[^\]]+)\])?")


def read_roles(text: str, buckets: FakeBuckets) -> tuple[GrantedRole, ...] | str:
    """Return the roles in a text such as ``admin,data_reader[travel:inventory:hotel]``, or the text of the refusal."""
    granted, refused = [], []
    for each in filter(None, map(str.strip, text.split(","))):
        role = _read_role(each, buckets)
        if role is None:
            refused.append(each)
        elif role not in granted:
            granted.append(role)
    if refused:
        return (
            "Cannot assign roles to user because the following roles are unknown, malformed or role parameters are "
            f"undefined: [{','.join(refused)}]"
        )
    return tuple(granted)


def offered_roles() -> Iterator[Mapping[str, object]]:
    """Yield the roles that can be granted, as the cluster manager lists them."""
    for name, (display_name, places) in DEFINITIONS.items():
        yield {
            **GrantedRole(name, (None,) * len(places)).described(),
            "name": display_name,
            "desc": _DESCRIPTIONS.get(name, f"{display_name}; a fake cluster stores roles and does not enforce them"),
        }


def _read_role(text: str, buckets: FakeBuckets) -> GrantedRole | None:
    found = _TEXT.fullmatch(text)
    name = "" if found is None else found["role"].lower()
    if found is None or name not in DEFINITIONS:
        return None
    # An asterisk alone means all buckets. Beside a scope or collection, it counts as a name.
    places = found["places"]
    given: list[str | None] = [] if places is None else [None] if places == ANY else [*places.split(":")]
    missing = len(DEFINITIONS[name].places) - len(given)
    if missing < 0 or (places is None and missing):
        return None
    return _resolved(name, [*given, *[None] * missing], buckets)


def _resolved(name: str, names: Iterable[str | None], buckets: FakeBuckets) -> GrantedRole | None:
    """Return a role at existing places; None if one of them does not exist."""
    places: list[Place | None] = []
    numbers: Mapping[str, int] = {bucket.name: bucket.number for bucket in buckets}
    collections: FakeCollections | None = None
    for level, each in enumerate(names):
        if each is None:
            places.append(None)
            continue
        if each not in numbers:
            return None
        places.append(Place(each, numbers[each]))
        if level == 0:
            bucket = buckets[each]
            collections = None if bucket.is_memcached else bucket.collections
            numbers = {} if collections is None else collections.scope_ids
        elif collections is not None:
            numbers = collections.scopes.get(each, {})
    return GrantedRole(name, tuple(places))
