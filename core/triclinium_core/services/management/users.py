"""Users, groups and roles: values, and requests that create, change, read or drop them.

Source: SDK-RFC 0054 "UserManager".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, unique
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_text, check_type
from triclinium_core.kv.operation.validation import check_bucket_name, check_name
from triclinium_core.services import received, service_request
from triclinium_core.services.management.management_request import ManagementRequest, check_password, reading
from triclinium_core.services.paths import check_segment, path
from triclinium_core.shown import one_line, shown, total_repr

ANY = "*"
"""Bucket of a role for all buckets."""

_RBAC = ("settings", "rbac")
_ROLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


@unique
class AuthDomain(StrEnum):
    """Directory that defines a user. The value is the word on the wire."""

    LOCAL = "local"
    """The cluster, which stores a password for the user."""
    EXTERNAL = "external"
    """An external directory, such as LDAP."""


@dataclass(frozen=True, slots=True)
class Role:
    """Permission of a user or group, with its keyspace. A scope or collection of ``*`` or "" becomes None, for all.

    Raises:
        InvalidArgumentException: a name is invalid, or there is a collection without a scope, or a scope without a
            bucket.

    Source: SDK-RFC 0054 "Role".
    """

    name: str
    bucket: str | None = None
    """Name of the bucket; ``*`` for all buckets, None for a role without a bucket."""
    scope: str | None = None
    collection: str | None = None

    def __post_init__(self) -> None:
        # The roles of a user or group are sent as one text, in which commas and brackets are separators.
        if not isinstance(self.name, str) or not _ROLE_NAME.fullmatch(self.name):
            raise errors.InvalidArgumentException(
                f"name={shown(self.name)} must be 1 to 100 characters from A-Z a-z 0-9 _", parameter="name"
            )
        # RFC 0054 "GetUser", "UpsertUser": ``*`` or an empty name, for all scopes or collections, becomes None, so
        # that roles from all server versions are equal.
        for part in ("scope", "collection"):
            if getattr(self, part) in (ANY, ""):
                object.__setattr__(self, part, None)
        for inner, outer in (("collection", "scope"), ("scope", "bucket")):
            if getattr(self, inner) is not None and getattr(self, outer) is None:
                raise errors.InvalidArgumentException(
                    f"{inner}={shown(getattr(self, inner))} needs a {outer}", parameter=inner
                )
        for part in ("bucket", "scope", "collection"):
            value = getattr(self, part)
            if value is None or (part == "bucket" and value == ANY):
                continue
            (check_bucket_name if part == "bucket" else check_name)(value, part)

    def __str__(self) -> str:
        parts = [part for part in (self.bucket, self.scope, self.collection) if part is not None]
        return f"{self.name}[{':'.join(parts)}]" if parts else self.name


@dataclass(frozen=True, slots=True)
class RoleAndDescription:
    """Role that the server defines, with its description."""

    role: Role
    display_name: str
    description: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of a user's role: ``type`` is ``user`` for a role assigned to the user, ``group`` for a group's role."""

    type: str
    name: str | None = None
    """Name of the group; None for a role assigned to the user."""


@dataclass(frozen=True, slots=True)
class RoleAndOrigins:
    """Role of a user, with its origins."""

    role: Role
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """User, with everything that can change. ``repr`` does not show the password.

    Raises:
        InvalidArgumentException: a name, a role or the password is invalid.

    Source: SDK-RFC 0054 "User".
    """

    username: str
    display_name: str = ""
    groups: Collection[str] = frozenset()
    """Names of groups, stored as a frozenset."""
    roles: Collection[Role] = frozenset()
    """Roles assigned to the user, without the roles of groups. Stored as a frozenset."""
    password: str | None = field(default=None, repr=False)
    """New password; None keeps the current one. A server never reveals a password."""
    unknown: tuple[str, ...] = ()
    """Roles and groups from the server in a form unknown to this version, as text of at most 300 characters each. The
    client does not write back a user with unknown parts, because they would be lost; ``unknown=()`` drops them."""

    def __post_init__(self) -> None:
        check_segment(self.username, "username")
        check_text(self.display_name, "display_name", empty=True)
        object.__setattr__(self, "groups", frozenset(check_group_name(each) for each in _all(self.groups, "groups")))
        object.__setattr__(self, "roles", _roles(self.roles))
        if self.password is not None:
            check_password(self.password, "password")
        check_type(self.unknown, "unknown", tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAndMetadata:
    """User, with the roles of the user's groups and other data from the server."""

    domain: AuthDomain | str
    """A ``str`` is a domain unknown to this version."""
    user: User
    """The user without a password, with the roles assigned to the user."""
    effective_roles: tuple[RoleAndOrigins, ...] = ()
    """Roles assigned to the user and roles of the user's groups."""
    password_changed: datetime | None = None
    external_groups: frozenset[str] = frozenset()
    """Groups in an external directory, such as LDAP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Group of users, with common roles.

    Raises:
        InvalidArgumentException: a name or a role is invalid.

    Source: SDK-RFC 0054 "Group".
    """

    name: str
    description: str = ""
    roles: Collection[Role] = frozenset()
    """Roles of the group, stored as a frozenset."""
    ldap_group_reference: str | None = None
    unknown: tuple[str, ...] = ()
    """Parts from the server in a form unknown to this version, like ``User.unknown``."""

    def __post_init__(self) -> None:
        check_group_name(self.name, "name")
        check_text(self.description, "description", empty=True)
        object.__setattr__(self, "roles", _roles(self.roles))
        if self.ldap_group_reference is not None:
            check_text(self.ldap_group_reference, "ldap_group_reference")
        check_type(self.unknown, "unknown", tuple)


def check_group_name(value: object, parameter: str = "groups") -> str:
    """Return ``value`` if it is a valid name of a group.

    Raises:
        InvalidArgumentException: the name is invalid. A comma is invalid because the groups of a user are sent as
            one text, separated by commas.
    """
    name = check_segment(value, parameter)
    if "," in name:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(name)} must not contain a comma", parameter=parameter
        )
    return name


def _all(values: object, parameter: str) -> Collection[object]:
    """Return ``values`` if it is a collection. Refuse a string, although it is a collection of characters.

    Raises:
        InvalidArgumentException: ``values`` is not a collection, or is a string.
    """
    if isinstance(values, str) or not isinstance(values, Collection):
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(values)} must be a set or another collection; put a single entry into a set",
            parameter=parameter,
        )
    return values


def _roles(values: object) -> frozenset[Role]:
    roles = []
    for each in _all(values, "roles"):
        check_type(each, "roles", Role)
        assert isinstance(each, Role)
        roles.append(each)
    return frozenset(roles)


def _joined(parts: Iterable[object]) -> str:
    return ",".join(sorted(map(str, parts)))


# -- Results.


class UserResult(service_request.ServiceResult, frozen=True):
    """One user."""

    user: UserAndMetadata


class AllUsersResult(service_request.Listing, frozen=True):
    """Users of a domain."""

    users: tuple[UserAndMetadata, ...]


class RolesResult(service_request.Listing, frozen=True):
    """Roles that the server defines."""

    roles: tuple[RoleAndDescription, ...]


class GroupResult(service_request.ServiceResult, frozen=True):
    """One group."""

    group: Group


class AllGroupsResult(service_request.Listing, frozen=True):
    """Groups of the cluster."""

    groups: tuple[Group, ...]


# RFC 0054 "GetUser": a server before 6.5 sends no origins, because it has no groups that could have roles.
_OWN = Origin("user")

_ROLE_PARTS = frozenset({"bucket_name", "scope_name", "collection_name"})


def _role(found: received.Members) -> Role:
    """Return a role.

    Raises:
        MalformedAnswer: a name in the role is invalid, or the role has an unknown part, which may limit the role.
    """
    parts = {name: found.get(name, str) for name in found.raw if name.endswith("_name") and found.is_set(name)}
    unknown = sorted(name for name, value in parts.items() if name not in _ROLE_PARTS or value is None)
    if unknown:
        raise service_request.MalformedAnswer(f"a role with an unknown or invalid {one_line(unknown[0])}")
    with reading("role"):
        return Role(
            found.text("role"), parts.get("bucket_name") or None, parts.get("scope_name"), parts.get("collection_name")
        )


def _role_and_origins(raw: msgspec.Raw) -> RoleAndOrigins:
    found = received.members_of(raw)
    if not found.is_set("origins"):
        return RoleAndOrigins(_role(found), (_OWN,))
    origins = tuple(
        Origin(kind, origin.get("name", str))
        for origin in found.objects("origins")
        if (kind := received.kept_word(origin.get("type", str))) is not None
    )
    return RoleAndOrigins(_role(found), origins)


def _group_name(raw: msgspec.Raw) -> str:
    with reading("group"):
        return check_group_name(received.decoded(raw, str))


def _user(found: received.Members, domain: AuthDomain) -> service_request.Steps[UserAndMetadata]:
    effective, unknown_roles = yield from received.separated(
        found.array("roles"), received.in_one_step(_role_and_origins)
    )
    groups, unknown_groups = yield from received.separated(found.array("groups"), received.in_one_step(_group_name))
    unknown = [*(row for row, _ in [*unknown_roles, *unknown_groups]), *found.no_arrays("roles", "groups")]
    own = frozenset(each.role for each in effective if any(origin.type == _OWN.type for origin in each.origins))
    with reading("user"):
        user = User(
            username=found.text("id"),
            display_name=found.text("name"),
            groups=frozenset(groups),
            roles=own,
            unknown=received.unknown_parts(unknown),
        )
    return UserAndMetadata(
        domain=found.word("domain", AuthDomain) or domain,
        user=user,
        effective_roles=effective,
        password_changed=found.get("password_change_date", datetime),
        external_groups=frozenset(found.texts("external_groups")),
    )


def _group(found: received.Members) -> service_request.Steps[Group]:
    roles, unknown_roles = yield from received.separated(
        found.array("roles"), received.in_one_step(lambda row: _role(received.members_of(row)))
    )
    unknown = [*(row for row, _ in unknown_roles), *found.no_arrays("roles")]
    if found.is_set("ldap_group_ref") and found.get("ldap_group_ref", str) is None:
        unknown.append(found.raw["ldap_group_ref"])
    with reading("group"):
        return Group(
            name=found.text("id"),
            description=found.text("description"),
            roles=frozenset(roles),
            ldap_group_reference=found.text("ldap_group_ref") or None,
            unknown=received.unknown_parts(unknown),
        )


def _role_and_description(raw: msgspec.Raw) -> RoleAndDescription:
    found = received.members_of(raw)
    return RoleAndDescription(_role(found), found.text("name"), found.text("desc"))


def _check_written_back(value: User | Group, parameter: str) -> None:
    if value.unknown:
        raise errors.InvalidArgumentException(
            f"{parameter}={shown(value)} would lose parts that this version does not support: {shown(value.unknown)}; "
            "pass unknown=() to drop them",
            parameter=parameter,
        )


# -- Users and roles.


class GetAllUsers(ManagementRequest, frozen=True):
    """Request for all users of a domain."""

    name: ClassVar[str] = "get_all_users"

    domain: AuthDomain = AuthDomain.LOCAL

    def __post_init__(self) -> None:
        check_choice(self.domain, "domain", AuthDomain)

    @property
    def target(self) -> str:
        """Path of the domain."""
        return path(*_RBAC, "users", self.domain)

    def decode(self, answer: service_request.HttpResponse) -> AllUsersResult:
        """Return the users in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[AllUsersResult]:
        """Read the users in steps."""
        rows = answer.body_as(list[msgspec.Raw])
        found, unread = yield from received.readable(rows, lambda row: _user(received.members_of(row), self.domain))
        return AllUsersResult(found, unread=unread)


class _OfUser(ManagementRequest, frozen=True):
    """Base of the requests about one user."""

    username: str
    domain: AuthDomain = AuthDomain.LOCAL

    def __post_init__(self) -> None:
        check_segment(self.username, "username")
        check_choice(self.domain, "domain", AuthDomain)

    @property
    def target(self) -> str:
        """Path of the user."""
        return path(*_RBAC, "users", self.domain, self.username)


class GetUser(_OfUser, frozen=True):
    """Request for one user."""

    name: ClassVar[str] = "get_user"

    def decode(self, answer: service_request.HttpResponse) -> UserResult:
        """Return the user in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[UserResult]:
        """Read the user in steps."""
        return UserResult((yield from _user(received.body_members(answer), self.domain)))


class DropUser(_OfUser, frozen=True):
    """Request that drops a user."""

    name: ClassVar[str] = "drop_user"
    method: ClassVar[str] = "DELETE"


class UpsertUser(ManagementRequest, frozen=True):
    """Request that creates or changes a user."""

    name: ClassVar[str] = "upsert_user"
    method: ClassVar[str] = "PUT"

    user: User
    domain: AuthDomain = AuthDomain.LOCAL

    def __post_init__(self) -> None:
        check_type(self.user, "user", User)
        _check_written_back(self.user, "user")
        check_choice(self.domain, "domain", AuthDomain)
        if self.domain is AuthDomain.EXTERNAL and self.user.password is not None:
            raise errors.InvalidArgumentException(
                f"user={shown(self.user.username)} is an external user, who has no password in the cluster; omit "
                "the password",
                parameter="user",
            )

    @property
    def target(self) -> str:
        """Path of the user."""
        return path(*_RBAC, "users", self.domain, self.user.username)

    @property
    def passwords(self) -> tuple[str, ...]:
        """New password; empty if the request sets none."""
        return () if self.user.password is None else (self.user.password,)

    def form(self) -> Mapping[str, str]:
        """Return the display name and roles, and the groups and password if there are any."""
        form = {"name": self.user.display_name, "roles": _joined(self.user.roles)}
        # RFC 0054 "UpsertUser": older servers have no groups. Newer servers read a missing field as no groups.
        if self.user.groups:
            form["groups"] = _joined(self.user.groups)
        if self.user.password is not None:
            form["password"] = self.user.password
        return form


class ChangePassword(ManagementRequest, frozen=True):
    """Request that changes the password of the client's user. ``repr`` does not show the password."""

    name: ClassVar[str] = "change_password"
    method: ClassVar[str] = "POST"

    new_password: str

    def __post_init__(self) -> None:
        check_password(self.new_password, "new_password")

    @total_repr
    def __repr__(self) -> str:
        return "ChangePassword()"

    @property
    def target(self) -> str:
        """Path of the command that changes passwords."""
        return path("controller", "changePassword")

    @property
    def passwords(self) -> tuple[str, ...]:
        """The new password."""
        return (self.new_password,)

    def form(self) -> Mapping[str, str]:
        """Return the new password as the only field."""
        return {"password": self.new_password}


class GetRoles(ManagementRequest, frozen=True):
    """Request for all roles that the server defines."""

    name: ClassVar[str] = "get_roles"

    @property
    def target(self) -> str:
        """Path of all roles."""
        return path(*_RBAC, "roles")

    def decode(self, answer: service_request.HttpResponse) -> RolesResult:
        """Return the roles in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[RolesResult]:
        """Read the roles in steps."""
        rows = answer.body_as(list[msgspec.Raw])
        found, unread = yield from received.readable(rows, received.in_one_step(_role_and_description))
        return RolesResult(found, unread=unread)


# -- Groups.


class GetAllGroups(ManagementRequest, frozen=True):
    """Request for all groups."""

    name: ClassVar[str] = "get_all_groups"

    @property
    def target(self) -> str:
        """Path of all groups."""
        return path(*_RBAC, "groups")

    def decode(self, answer: service_request.HttpResponse) -> AllGroupsResult:
        """Return the groups in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[AllGroupsResult]:
        """Read the groups in steps."""
        rows = answer.body_as(list[msgspec.Raw])
        found, unread = yield from received.readable(rows, lambda row: _group(received.members_of(row)))
        return AllGroupsResult(found, unread=unread)


class _OfGroup(ManagementRequest, frozen=True):
    """Base of the requests about one group."""

    group_name: str

    def __post_init__(self) -> None:
        check_group_name(self.group_name, "group_name")

    @property
    def target(self) -> str:
        """Path of the group."""
        return path(*_RBAC, "groups", self.group_name)


class GetGroup(_OfGroup, frozen=True):
    """Request for one group."""

    name: ClassVar[str] = "get_group"

    def decode(self, answer: service_request.HttpResponse) -> GroupResult:
        """Return the group in the response."""
        return service_request.all_steps(self.decode_in_steps(answer))

    def decode_in_steps(self, answer: service_request.HttpResponse) -> service_request.Steps[GroupResult]:
        """Read the group in steps."""
        return GroupResult((yield from _group(received.body_members(answer))))


class DropGroup(_OfGroup, frozen=True):
    """Request that drops a group."""

    name: ClassVar[str] = "drop_group"
    method: ClassVar[str] = "DELETE"


class UpsertGroup(ManagementRequest, frozen=True):
    """Request that creates or changes a group."""

    name: ClassVar[str] = "upsert_group"
    method: ClassVar[str] = "PUT"

    group: Group

    def __post_init__(self) -> None:
        check_type(self.group, "group", Group)
        _check_written_back(self.group, "group")

    @property
    def target(self) -> str:
        """Path of the group."""
        return path(*_RBAC, "groups", self.group.name)

    def form(self) -> Mapping[str, str]:
        """Return the description and roles of the group, and its LDAP reference if it has one."""
        form = {"description": self.group.description, "roles": _joined(self.group.roles)}
        if self.group.ldap_group_reference is not None:
            form["ldap_group_ref"] = self.group.ldap_group_reference
        return form
