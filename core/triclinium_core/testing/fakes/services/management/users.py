"""Users and groups of a fake cluster, and the requests about them.

Roles are stored but not checked: any authenticated user may do everything. With a password, KV accepts only the user
of ``FakeNodeOptions``; the services also accept the users that were created here.

Source: SDK-RFC 0054, UserManager; Couchbase Server documentation, "Role Based Access Control (RBAC) API".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json
from triclinium_core.testing.fakes.services.fake_request import FakeRequest

ROLES: Mapping[str, str] = {
    "admin": "Full Admin",
    "ro_admin": "Read-Only Admin",
    "cluster_admin": "Cluster Admin",
    "security_admin_local": "Local User Security Admin",
    "bucket_admin": "Bucket Admin",
    "bucket_full_access": "Application Access",
    "scope_admin": "Manage Scopes",
    "data_reader": "Data Reader",
    "data_writer": "Data Writer",
    "query_select": "Query Select",
    "query_insert": "Query Insert",
    "query_update": "Query Update",
    "query_delete": "Query Delete",
    "query_manage_index": "Query Manage Index",
    "query_system_catalog": "Query System Catalog",
    "fts_admin": "Search Admin",
    "fts_searcher": "Search Reader",
    "analytics_admin": "Analytics Admin",
    "analytics_reader": "Analytics Reader",
    "views_admin": "Views Admin",
    "views_reader": "Views Reader",
}
"""Roles that can be granted, with their display names."""

_FOR_BUCKETS = frozenset(
    name
    for name in ROLES
    if name.startswith(("bucket_", "scope_", "data_", "query_", "views_")) or name == "fts_searcher"
) - {"query_system_catalog"}
"""Roles that apply to a bucket, a scope or a collection, or to all of them."""

_ROLE = re.compile(r"(?P<role>\w+)(?:\[(?P<keyspace>[^\]]+)\])?")
_ROLES = re.compile(r"\w+(?:\[[^\]]+\])?|[^,]+")


class _Entry(NamedTuple):
    """A user or a group."""

    name: str
    """Display name."""
    roles: tuple[Mapping[str, str], ...]
    groups: tuple[str, ...] = ()
    password: str = ""


class FakeUsers:
    """Users and groups."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, str], _Entry] = {}
        self._groups: dict[str, _Entry] = {}

    def knows(self, credentials: bytes) -> bool:
        """Return whether ``credentials``, a name and a password joined by a colon, belong to a created local user."""
        return any(
            credentials == f"{name}:{user.password}".encode()
            for (domain, name), user in self._users.items()
            if domain == "local"
        )

    def answer(self, request: FakeRequest) -> ServiceReply | None:
        """Answer a request about users, groups or roles; return None for any other request."""
        match request.method, request.segments:
            case "GET", ("settings", "rbac", "roles"):
                return as_json([_described(role, name) for role, name in ROLES.items()])
            case "GET", ("settings", "rbac", "users"):
                return as_json([self._user(*key) for key in self._users])
            case "GET", ("settings", "rbac", "users", domain):
                return as_json([self._user(*key) for key in self._users if key[0] == domain])
            case method, ("settings", "rbac", "users", domain, name):
                return self._about_user(method, request, domain, name)
            case "GET", ("settings", "rbac", "groups"):
                return as_json([self._group(name) for name in self._groups])
            case method, ("settings", "rbac", "groups", name):
                return self._about_group(method, request, name)
            case _:
                return None

    def _about_user(self, method: str, request: FakeRequest, domain: str, name: str) -> ServiceReply | None:
        known = self._users.get((domain, name))
        match method:
            case "GET":
                return _missing("Unknown user.") if known is None else as_json(self._user(domain, name))
            case "DELETE":
                if self._users.pop((domain, name), None) is None:
                    return _missing("User was not found.")
                return as_json("")
            case "PUT" | "PATCH":
                form = request.form
                roles = _read_roles(form.get("roles", ""))
                if isinstance(roles, ServiceReply):
                    return roles
                groups = tuple(group for group in form.get("groups", "").split(",") if group)
                unknown = [group for group in groups if group not in self._groups]
                if unknown:
                    return _wrong("groups", f"Groups do not exist: {', '.join(unknown)}")
                password = form.get("password", "" if known is None else known.password)
                if domain == "local" and not password:
                    return _wrong("password", "Password is required for new user.")
                self._users[domain, name] = _Entry(form.get("name", ""), roles, groups, password)
                return as_json("")
            case _:
                return None

    def _about_group(self, method: str, request: FakeRequest, name: str) -> ServiceReply | None:
        match method:
            case "GET":
                return _missing("Unknown group.") if name not in self._groups else as_json(self._group(name))
            case "DELETE":
                return _missing("Group was not found.") if self._groups.pop(name, None) is None else as_json("")
            case "PUT":
                roles = _read_roles(request.form.get("roles", ""))
                if isinstance(roles, ServiceReply):
                    return roles
                self._groups[name] = _Entry(request.form.get("description", ""), roles)
                return as_json("")
            case _:
                return None

    def _user(self, domain: str, name: str) -> Mapping[str, object]:
        user = self._users[domain, name]
        origins: dict[str, list[Mapping[str, str]]] = {}
        roles: dict[str, Mapping[str, str]] = {}
        for role, origin in [
            *((role, {"type": "user"}) for role in user.roles),
            *(
                (role, {"type": "group", "name": group})
                for group in user.groups
                if group in self._groups
                for role in self._groups[group].roles
            ),
        ]:
            key = str(sorted(role.items()))
            roles[key] = role
            origins.setdefault(key, []).append(origin)
        return {
            "id": name,
            "domain": domain,
            "name": user.name,
            "roles": [{**role, "origins": origins[key]} for key, role in roles.items()],
            "groups": user.groups,
            "external_groups": [],
        }

    def _group(self, name: str) -> Mapping[str, object]:
        group = self._groups[name]
        return {"id": name, "description": group.name, "roles": group.roles, "ldap_group_ref": ""}


def _described(role: str, name: str) -> Mapping[str, str]:
    everywhere = {"bucket_name": "*"} if role in _FOR_BUCKETS else {}
    return {
        "role": role,
        "name": name,
        "desc": f"{name}; a fake cluster stores roles and does not enforce them",
        **everywhere,
    }


def _read_roles(text: str) -> tuple[Mapping[str, str], ...] | ServiceReply:
    """Return the roles in a string such as ``admin,data_reader[travel:inventory:hotel]``, or a refusal."""
    roles = []
    for each in filter(None, (part.strip() for part in _ROLES.findall(text))):
        found = _ROLE.fullmatch(each)
        if found is None or found["role"] not in ROLES or (found["role"] in _FOR_BUCKETS) != bool(found["keyspace"]):
            return _wrong(
                "roles",
                "Cannot assign roles to user because the following roles are unknown, malformed or role parameters are "
                f"undefined: [{each}]",
            )
        names = dict(
            zip(("bucket_name", "scope_name", "collection_name"), (found["keyspace"] or "").split(":"), strict=False)
        )
        roles.append({"role": found["role"], **{key: name for key, name in names.items() if name}})
    return tuple(roles)


def _missing(text: str) -> ServiceReply:
    return ServiceReply(status=404, body=msgspec.json.encode(text), applied=False)


def _wrong(field: str, text: str) -> ServiceReply:
    return ServiceReply(status=400, body=msgspec.json.encode({"errors": {field: text}}), applied=False)
