"""Users and groups of a fake cluster.

Roles are stored but not enforced: any authenticated user may do everything. KV and the services accept the user of
``FakeNodeOptions`` and the local users that were created here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from triclinium_core.testing.fakes.services.management.roles import GrantedRole
from triclinium_core.testing.fakes.store.buckets import FakeBuckets

LOCAL = "local"
EXTERNAL = "external"
DOMAINS = (LOCAL, EXTERNAL)
"""Directories that define users. Only users of the first one have a password."""


@dataclass(frozen=True, slots=True)
class FakeUser:
    """A user; None for an attribute that was not given."""

    uuid: str
    roles: tuple[GrantedRole, ...]
    groups: tuple[str, ...] = ()
    display_name: str | None = None
    password: str | None = None
    password_changed_at: float = 0.0
    """Unix time at which the password was set."""


@dataclass(frozen=True, slots=True)
class FakeGroup:
    """A group; None for an attribute that was not given."""

    roles: tuple[GrantedRole, ...]
    description: str | None = None
    ldap_reference: str | None = None


class FakeUsers:
    """Users by domain and name, and groups by name."""

    def __init__(self) -> None:
        self.users: dict[tuple[str, str], FakeUser] = {}
        self.groups: dict[str, FakeGroup] = {}
        self._created = 0

    def knows(self, credentials: bytes) -> bool:
        """Return whether ``credentials``, a name and a password joined by a colon, belong to a local user."""
        return any(
            credentials == f"{name}:{user.password}".encode()
            for (domain, name), user in self.users.items()
            if domain == LOCAL
        )

    def password_of(self, name: str) -> str | None:
        """Return the password of a local user; None if there is no such user."""
        user = self.users.get((LOCAL, name))
        return None if user is None else user.password

    def drop_group(self, name: str) -> bool:
        """Remove a group, also from its users, and return whether it existed."""
        if self.groups.pop(name, None) is None:
            return False
        for key, user in self.users.items():
            if name in user.groups:
                self.users[key] = replace(user, groups=tuple(group for group in user.groups if group != name))
        return True

    def new_uuid(self) -> str:
        """Return the UUID of a new user; UUIDs count up, so that runs are reproducible."""
        self._created += 1
        return f"00000000-0000-4000-9000-{self._created:012x}"

    def described_user(self, domain: str, name: str, buckets: FakeBuckets) -> Mapping[str, object]:
        """Return a user as the cluster manager reports it, with the roles whose places exist."""
        user = self.users[domain, name]
        origins: dict[GrantedRole, list[Mapping[str, str]]] = {}
        for role in user.roles:
            origins.setdefault(role, []).append({"type": "user"})
        for group in user.groups:
            for role in self.groups[group].roles:
                origins.setdefault(role, []).append({"type": "group", "name": group})
        described: dict[str, object] = {
            "id": name,
            "domain": domain,
            "roles": [
                {**role.described(), "origins": found} for role, found in origins.items() if role.is_valid(buckets)
            ],
            "groups": user.groups,
            "external_groups": [],
        }
        if user.display_name is not None:
            described["name"] = user.display_name
        if domain == LOCAL:
            changed = datetime.fromtimestamp(user.password_changed_at, UTC)
            described["uuid"] = user.uuid
            described["password_change_date"] = f"{changed:%Y-%m-%dT%H:%M:%S}.000Z"
        return described

    def described_group(self, name: str, buckets: FakeBuckets) -> Mapping[str, object]:
        """Return a group as the cluster manager reports it, with the roles whose places exist."""
        group = self.groups[name]
        optional = {"ldap_group_ref": group.ldap_reference, "description": group.description}
        return {"id": name, "roles": _described(group.roles, buckets)} | {
            field: text for field, text in optional.items() if text is not None
        }


def _described(roles: Sequence[GrantedRole], buckets: FakeBuckets) -> list[Mapping[str, object]]:
    return [role.described() for role in roles if role.is_valid(buckets)]
