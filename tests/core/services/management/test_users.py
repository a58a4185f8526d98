"""Requests about users, groups and roles, according to RFC 0054."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.core.services.answers import answered, anything
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.management import users
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.received import UNKNOWN_MAX
from triclinium_core.services.service_request import Listing, MalformedAnswer
from triclinium_core.shown import SERVER_TEXT_MAX

EXTERNAL = users.AuthDomain.EXTERNAL
ADA = users.User(
    username="ada",
    display_name="Ada Lovelace",
    groups={"makers", "readers"},
    roles={
        users.Role("admin"),
        users.Role("data_reader", "travel", "inventory", "hotel"),
        users.Role("bucket_admin", "*"),
    },
    password="geheim",
)


@rows(
    ("request", "method", "target", "form"),
    [
        (users.GetUser("ada"), "GET", "/settings/rbac/users/local/ada", {}),
        (users.GetUser("ada", EXTERNAL), "GET", "/settings/rbac/users/external/ada", {}),
        (users.GetAllUsers(), "GET", "/settings/rbac/users/local", {}),
        (users.GetAllUsers(EXTERNAL), "GET", "/settings/rbac/users/external", {}),
        (users.DropUser("ada"), "DELETE", "/settings/rbac/users/local/ada", {}),
        (users.DropUser("ada", EXTERNAL), "DELETE", "/settings/rbac/users/external/ada", {}),
        (
            users.UpsertUser(ADA),
            "PUT",
            "/settings/rbac/users/local/ada",
            {
                "name": "Ada Lovelace",
                "roles": "admin,bucket_admin[*],data_reader[travel:inventory:hotel]",
                "groups": "makers,readers",
                "password": "geheim",
            },
        ),
        # RFC 0054 "UpsertUser": the form has a password only if one is set, and groups only if the user has groups.
        (
            users.UpsertUser(users.User(username="bob"), EXTERNAL),
            "PUT",
            "/settings/rbac/users/external/bob",
            {"name": "", "roles": ""},
        ),
        (users.GetRoles(), "GET", "/settings/rbac/roles", {}),
        (users.GetGroup("makers"), "GET", "/settings/rbac/groups/makers", {}),
        (users.GetAllGroups(), "GET", "/settings/rbac/groups", {}),
        (users.DropGroup("makers"), "DELETE", "/settings/rbac/groups/makers", {}),
        (
            users.UpsertGroup(
                users.Group(
                    name="makers",
                    description="They make",
                    roles=[users.Role("security_admin"), users.Role("bucket_full_access", "default")],
                    ldap_group_reference="cn=makers,dc=example",
                )
            ),
            "PUT",
            "/settings/rbac/groups/makers",
            {
                "description": "They make",
                "roles": "bucket_full_access[default],security_admin",
                "ldap_group_ref": "cn=makers,dc=example",
            },
        ),
        (users.UpsertGroup(users.Group(name="g")), "PUT", "/settings/rbac/groups/g", {"description": "", "roles": ""}),
        (users.ChangePassword("geheim"), "POST", "/controller/changePassword", {"password": "geheim"}),
    ],
)
def test_requests(request: ManagementRequest, method: str, target: str, form: dict[str, str]) -> None:
    """Each request has its method, path and form."""
    sent = request.encode(75.0)

    assert (method, target) == (sent.method, sent.target)
    assert form == dict(parse_qsl(sent.body.decode(), keep_blank_values=True))
    assert bool(form) == request.has_body
    assert not form or sent.content_type == "application/x-www-form-urlencoded"


@rows(
    ("role", "expected"),
    [
        (users.Role("admin"), "admin"),
        (users.Role("bucket_admin", "*"), "bucket_admin[*]"),
        (users.Role("bucket_admin", "travel"), "bucket_admin[travel]"),
        (users.Role("data_reader", "travel", "*", "*"), "data_reader[travel]"),
        (users.Role("data_reader", "travel", "inventory"), "data_reader[travel:inventory]"),
        (users.Role("data_reader", "travel", "inventory", "*"), "data_reader[travel:inventory]"),
        (users.Role("data_reader", "travel", "inventory", "hotel"), "data_reader[travel:inventory:hotel]"),
    ],
)
def test_roles(role: users.Role, expected: str) -> None:
    """A role is sent in the service's format, which omits a star as scope or collection."""
    assert expected == str(role)
    assert "*" not in (role.scope, role.collection)


@rows(
    "parts",
    [
        ("",),
        (None,),
        ("admin,bucket_admin[*]",),
        ("admin[x]",),
        ("a b",),
        ("data_reader", None, "inventory"),
        ("data_reader", "travel", None, "hotel"),
        ("data_reader", "travel", "*", "hotel"),
        ("data_reader", "a,b"),
        ("data_reader", "a]"),
        ("data_reader", "a:b"),
        ("data_reader", "travel", "a:b"),
        ("data_reader", "travel", "inventory", "a]"),
        ("data_reader", 7),
    ],
)
def test_invalid_roles(parts: tuple[str, ...]) -> None:
    """A role with an invalid name, a scope without a bucket, or a collection without a scope is refused."""
    with pytest.raises(errors.InvalidArgumentException):
        users.Role(*parts)


@rows(
    ("whole", "field", "values"),
    [
        (ADA, "username", ("", None, "..")),
        (ADA, "display_name", (None, "\ud800")),
        (ADA, "groups", ("makers", None, ["a,b"], [""], [7])),
        (ADA, "roles", ("admin", ["admin"], users.Role("admin"))),
        (ADA, "password", ("", b"geheim")),
        (users.Group(name="makers"), "name", ("", "a,b", ".")),
        (users.Group(name="makers"), "description", (None,)),
        (users.Group(name="makers"), "roles", (["admin"],)),
        (users.Group(name="makers"), "ldap_group_reference", ("", 7)),
    ],
)
def test_invalid_users_and_groups(whole: Any, field: str, values: tuple[object, ...]) -> None:
    """An invalid field raises an error with its name, and without the password, when it is passed."""
    for value in values:
        with pytest.raises(errors.InvalidArgumentException) as caught:
            replace(whole, **{field: value})

        assert field == caught.value.parameter
        assert "geheim" not in str(caught.value)


@rows(
    "make",
    [
        lambda: users.GetUser("ada", anything("local")),
        lambda: users.GetAllUsers(anything("all")),
        lambda: users.DropUser("ada", anything(None)),
        lambda: users.UpsertUser(anything("ada")),
        lambda: users.UpsertUser(ADA, anything("local")),
        lambda: users.UpsertUser(ADA, EXTERNAL),
        lambda: users.UpsertGroup(anything("makers")),
        lambda: users.GetGroup("a,b"),
        lambda: users.DropGroup(""),
    ],
)
def test_invalid_requests(make: Callable[[], object]) -> None:
    """A value of another type, an invalid name, and an external user with a password are refused."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert "geheim" not in str(caught.value)


USER = {
    "id": "ada",
    "domain": "local",
    "name": "Ada Lovelace",
    "groups": ["makers"],
    "external_groups": ["ldap"],
    "password_change_date": "2019-09-26T23:58:55.000Z",
    "uuid": "x",
    "roles": [
        {"role": "admin", "origins": [{"type": "user"}]},
        {
            "role": "data_reader",
            "bucket_name": "travel",
            "scope_name": "*",
            "collection_name": "*",
            "origins": [{"type": "group", "name": "makers"}],
        },
        {"role": "data_writer", "bucket_name": "*", "origins": [{"type": "user"}, {"type": "group", "name": "makers"}]},
    ],
}


def test_a_user_is_read() -> None:
    """A user's own roles are read separately from the roles that the user has through groups."""
    reader, writer = users.Role("data_reader", "travel"), users.Role("data_writer", "*")
    expected = users.UserAndMetadata(
        domain=users.AuthDomain.LOCAL,
        user=users.User(
            username="ada",
            display_name="Ada Lovelace",
            groups=frozenset({"makers"}),
            roles={users.Role("admin"), writer},
        ),
        effective_roles=(
            users.RoleAndOrigins(users.Role("admin"), (users.Origin("user"),)),
            users.RoleAndOrigins(reader, (users.Origin("group", "makers"),)),
            users.RoleAndOrigins(writer, (users.Origin("user"), users.Origin("group", "makers"))),
        ),
        password_changed=datetime(2019, 9, 26, 23, 58, 55, tzinfo=UTC),
        external_groups=frozenset({"ldap"}),
    )

    assert expected == users.GetUser("ada").decode(answered(USER)).user
    assert (expected, expected) == users.GetAllUsers().decode(answered([USER, USER])).users


def test_a_user_of_an_old_server() -> None:
    """Without origins (servers before 6.5) every role is read as the user's own, so the user can be written back."""
    body = {"id": "ada", "domain": "external", "roles": [{"role": "bucket_admin", "bucket_name": "travel"}]}
    found = users.GetUser("ada", EXTERNAL).decode(answered(body)).user

    assert frozenset({users.Role("bucket_admin", "travel")}) == found.user.roles
    assert (
        users.RoleAndOrigins(users.Role("bucket_admin", "travel"), (users.Origin("user"),)),
    ) == found.effective_roles
    assert {"name": "", "roles": "bucket_admin[travel]"} == users.UpsertUser(found.user, EXTERNAL).form()


def test_roles_are_read() -> None:
    """Roles are read with their names and descriptions; a role that cannot be represented is left out."""
    body = [
        {"role": "admin", "name": "Full Admin", "desc": "Can do all", "ce": True},
        {"role": "a,b"},
        {"role": "data_reader", "bucket_name": "*", "scope_name": "*", "collection_name": "*", "name": "Reader"},
        {"role": "ro_admin", "name": None, "desc": 7},
    ]
    found = users.GetRoles().decode(answered(body))

    assert (
        users.RoleAndDescription(users.Role("admin"), "Full Admin", "Can do all"),
        users.RoleAndDescription(users.Role("data_reader", "*"), "Reader", ""),
        users.RoleAndDescription(users.Role("ro_admin"), "", ""),
    ) == found.roles
    assert 1 == found.unread


def test_groups_are_read() -> None:
    """Groups are read with their roles; a group without an LDAP reference has None as its reference."""
    makers = {
        "id": "makers",
        "description": "They make",
        "roles": [{"role": "admin"}],
        "ldap_group_ref": "cn=makers",
    }
    expected = users.Group(
        name="makers", description="They make", roles={users.Role("admin")}, ldap_group_reference="cn=makers"
    )

    assert expected == users.GetGroup("makers").decode(answered(makers)).group
    assert (expected, users.Group(name="g")) == users.GetAllGroups().decode(
        answered([makers, {"id": "g", "roles": [], "ldap_group_ref": ""}])
    ).groups


@rows("changes", [{"id": ""}, {"id": 7}, {"id": ".."}])
def test_a_user_or_group_without_a_usable_name(changes: dict[str, object]) -> None:
    """Without a usable name, a user or group requested alone raises MalformedAnswer, and a list omits this entry."""
    for one, listing in ((users.GetUser("ada"), users.GetAllUsers()), (users.GetGroup("ada"), users.GetAllGroups())):
        with pytest.raises(MalformedAnswer):
            one.decode(answered(USER | changes))

        found = listing.decode(answered([USER | changes, USER, None]))

        assert isinstance(found, Listing)
        assert 2 == found.unread
    assert ["ada"] == [
        each.user.username for each in users.GetAllUsers().decode(answered([USER | changes, USER])).users
    ]


@rows(
    ("member", "value", "field", "expected"),
    [
        ("domain", "moon", "domain", "moon"),
        ("domain", None, "domain", EXTERNAL),
        ("domain", 7, "domain", EXTERNAL),
        ("password_change_date", "yesterday", "password_changed", None),
        ("password_change_date", 1569542335, "password_changed", None),
        ("external_groups", None, "external_groups", frozenset()),
        ("external_groups", ["a", 7], "external_groups", frozenset({"a"})),
        ("roles", None, "effective_roles", ()),
    ],
)
def test_an_unknown_value_of_a_user(member: str, value: object, field: str, expected: object) -> None:
    """An unknown value is kept or replaced by a default, and the rest of the user and all other users are read."""
    found = users.GetAllUsers(EXTERNAL).decode(answered([USER | {member: value}, USER])).users

    assert ["ada", "ada"] == [each.user.username for each in found]
    assert expected == getattr(found[0], field)
    assert users.UpsertUser(found[0].user).form()


def test_null_names_and_lists() -> None:
    """Null as a name or list of a user or group is read as an empty string or list."""
    user = users.GetUser("ada").decode(answered({"id": "ada", "name": None, "roles": None, "groups": None})).user.user
    group = users.GetGroup("g").decode(answered({"id": "g", "description": None, "roles": None})).group

    assert users.User(username="ada") == user
    assert users.Group(name="g") == group


@rows(
    "changes",
    [
        {"roles": [{"role": "a,b"}]},
        {"roles": [{"role": "a", "scope_name": "s"}]},
        {"roles": [{"role": "data_reader", "bucket_name": "travel", "catalog_name": "c"}]},
        {"roles": [{"role": "data_reader", "bucket_name": 7}]},
        {"roles": [{}]},
        {"roles": [7]},
        {"roles": {"admin": True}},
        {"groups": ["a,b"]},
        {"groups": "makers"},
    ],
)
def test_a_role_or_group_of_an_unknown_form(changes: dict[str, object]) -> None:
    """A user lists an unknown role or group in ``unknown``, and is not written back until the caller drops it."""
    found = users.GetUser("ada").decode(answered(USER | changes)).user.user
    group = users.GetGroup("g").decode(answered({"id": "g"} | changes)).group

    assert 1 == len(found.unknown)
    assert ("groups" in changes) == (not group.unknown)
    with pytest.raises(errors.InvalidArgumentException, match="unknown"):
        users.UpsertUser(found)
    if group.unknown:
        with pytest.raises(errors.InvalidArgumentException, match="unknown"):
            users.UpsertGroup(group)
    assert "name" in users.UpsertUser(replace(found, unknown=())).form()


def test_a_reference_of_an_unknown_form() -> None:
    """A group whose reference is not a string is read, but is not written back."""
    group = users.GetGroup("g").decode(answered({"id": "g", "ldap_group_ref": {"dn": "x"}})).group

    assert (None, 1) == (group.ldap_group_reference, len(group.unknown))
    with pytest.raises(errors.InvalidArgumentException):
        users.UpsertGroup(group)


def test_origins_of_an_unknown_form() -> None:
    """An unknown origin is kept, and null origins mean that the role is the user's own."""
    roles = [
        {"role": "admin", "origins": None},
        {"role": "ro_admin", "origins": [{"type": "moon", "name": 7}, 7]},
    ]
    found = users.GetUser("ada").decode(answered(USER | {"roles": roles})).user

    assert frozenset({users.Role("admin")}) == found.user.roles
    assert (users.Origin("moon"),) == found.effective_roles[1].origins


def test_many_unknown_roles() -> None:
    """If a user has many unknown roles, ``unknown`` has few, short texts, and the last text counts the other roles."""
    found = users.GetUser("ada").decode(answered(USER | {"roles": [{"role": "," * 5000}] * 500})).user.user

    assert UNKNOWN_MAX + 1 == len(found.unknown)
    assert all(len(text) <= SERVER_TEXT_MAX for text in found.unknown)
    assert "400" in found.unknown[-1]
