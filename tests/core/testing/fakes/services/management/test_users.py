"""Users, groups, roles and passwords at the cluster manager."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from tests.core.testing.fakes.services.management.manager import BUCKETS, GROUPS, SCOPES, USERS, Manager
from tests.core.testing.http_client import basic
from tests.core.testing.node_client import NodeClient
from tests.rows import rows
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing import FakeNode, FakeNodeOptions

CHANGE = "/controller/changePassword"


def with_pets(node: FakeNode | None = None) -> Manager:
    """Return a connection to the cluster manager of a node with the collection ``zoo.pets``."""
    manager = Manager(node)
    manager.submit("POST", SCOPES, name="zoo")
    manager.submit("POST", f"{SCOPES}/zoo/collections", name="pets")
    return manager


@pytest.fixture
def manager() -> Manager:
    """Return a connection to the cluster manager of a lone node with the collection ``zoo.pets``."""
    return with_pets()


def roles_of(manager: Manager, path: str = f"{USERS}/ada") -> list[dict[str, object]]:
    """Return the roles of a user or group without their origins."""
    roles = manager.ask("GET", path).document["roles"]
    assert isinstance(roles, list)
    return [{name: value for name, value in role.items() if name != "origins"} for role in roles]


def role(name: str, *places: str) -> dict[str, object]:
    """Return a role as the cluster manager reports it."""
    return {"role": name, **dict(zip(("bucket_name", "scope_name", "collection_name"), places, strict=False))}


def test_users_and_groups(manager: Manager) -> None:
    """The cluster manager keeps users and groups with their roles, and the services accept a new user."""
    manager.submit("PUT", f"{GROUPS}/readers", description="They read", roles="data_reader[default:zoo:pets]")
    manager.submit("PUT", f"{GROUPS}/gone", roles="admin", ldap_group_ref="cn=gone")
    form = {"roles": "admin,data_reader[default:zoo:pets],admin", "groups": "readers, gone"}
    put = manager.submit("PUT", f"{USERS}/ada", name="Ada", password="secret", **form)
    groups = json.loads(manager.ask("GET", GROUPS).body)
    manager.ask("DELETE", f"{GROUPS}/gone")
    ada = manager.ask("GET", f"{USERS}/ada").document
    manager.authorization = basic("ada:secret")
    let_in = manager.ask("GET", USERS)
    dropped = [manager.ask("DELETE", f"{USERS}/ada"), manager.ask("GET", "/pools")]

    assert (200, 200, [200, 401]) == (put.status, let_in.status, [each.status for each in dropped])
    reader = role("data_reader", "default", "zoo", "pets")
    origins = [{"type": "user"}, {"type": "group", "name": "readers"}]
    assert [{"role": "admin", "origins": origins[:1]}, {**reader, "origins": origins}] == ada["roles"]
    assert ("ada", "local", "Ada", ["readers"]) == (ada["id"], ada["domain"], ada["name"], ada["groups"])
    assert "2025-06-15T15:06:40.000Z" == ada["password_change_date"]
    assert [ada] == json.loads(let_in.body)
    assert [
        {"id": "readers", "roles": [reader], "description": "They read"},
        {"id": "gone", "roles": [{"role": "admin"}], "ldap_group_ref": "cn=gone"},
    ] == groups


def test_dropped_group_leaves_its_users(manager: Manager) -> None:
    """A group that is created again does not have the users of the dropped group; these keep their other groups."""
    for group in ("readers", "gone"):
        manager.submit("PUT", f"{GROUPS}/{group}", roles="admin")
    manager.submit("PUT", f"{USERS}/ada", password="secret", groups="gone,readers")
    manager.ask("DELETE", f"{GROUPS}/gone")
    manager.submit("PUT", f"{GROUPS}/gone", roles="admin")

    assert ["readers"] == manager.ask("GET", f"{USERS}/ada").document["groups"]


@rows(
    ("text", "expected"),
    [
        ("admin", [role("admin")]),
        ("Admin , ro_admin,", [role("admin"), role("ro_admin")]),
        ("bucket_admin[default]", [role("bucket_admin", "default")]),
        ("bucket_admin[*]", [role("bucket_admin", "*")]),
        ("scope_admin[default]", [role("scope_admin", "default", "*")]),
        ("scope_admin[default:zoo]", [role("scope_admin", "default", "zoo")]),
        ("data_reader[*]", [role("data_reader", "*", "*", "*")]),
        ("data_reader[default]", [role("data_reader", "default", "*", "*")]),
        ("data_writer[default:zoo]", [role("data_writer", "default", "zoo", "*")]),
        ("query_select[default:zoo:pets]", [role("query_select", "default", "zoo", "pets")]),
        ("fts_admin[default]", [role("fts_admin", "default")]),
        ("", []),
    ],
)
def test_roles_name_all_their_places(manager: Manager, text: str, expected: Sequence[Mapping[str, object]]) -> None:
    """A role of a user or a group reports each place that it can be limited to, with an asterisk if it is not."""
    statuses = [
        manager.submit("PUT", f"{USERS}/ada", password="secret", roles=text).status,
        manager.submit("PUT", f"{GROUPS}/readers", roles=text).status,
    ]

    assert [200, 200] == statuses
    assert expected == roles_of(manager) == roles_of(manager, f"{GROUPS}/readers")


@rows(
    "text",
    [
        "king",
        "data_reader",
        "data_reader[]",
        "data_reader[default",
        "data_reader[gone]",
        "data_reader[default:gone]",
        "data_reader[default:zoo:gone]",
        "data_reader[default:_default:pets]",
        "data_reader[default:]",
        "data_reader[default:*]",
        "data_reader[*:zoo]",
        "data_reader[default:zoo:pets:toes]",
        "scope_admin[default:zoo:pets]",
        "bucket_admin[gone]",
        "bucket_admin[default:zoo]",
        "admin[default]",
        "fts_admin",
        "data_reader[cache:_default]",
    ],
)
def test_roles_without_a_place_are_refused(text: str) -> None:
    """A role that is unknown, malformed or at a missing place is refused, for new and known users and groups."""
    manager = with_pets(FakeNode(FakeNodeOptions(memcached_buckets=("cache",))))
    for path in (f"{USERS}/known", f"{GROUPS}/known"):
        manager.submit("PUT", path, roles="admin", **({"password": "secret"} if path.startswith(USERS) else {}))
    answered = [
        manager.submit("PUT", f"{USERS}/new", password="secret", roles=f"admin,{text}"),
        manager.submit("PUT", f"{USERS}/known", roles=text),
        manager.submit("PUT", f"{GROUPS}/new", roles=text),
        manager.submit("PUT", f"{GROUPS}/known", roles=f"{text},admin"),
    ]

    assert [(400, ["roles"])] * 4 == [(each.status, list(each.document["errors"])) for each in answered]  # type: ignore[call-overload]
    assert all(text in each.document["errors"]["roles"] for each in answered)  # type: ignore[index]
    assert [role("admin")] == roles_of(manager, f"{USERS}/known") == roles_of(manager, f"{GROUPS}/known")
    assert [404, 404] == [manager.ask("GET", path).status for path in (f"{USERS}/new", f"{GROUPS}/new")]


@rows(
    ("drop", "create", "form", "expected"),
    [
        (f"{SCOPES}/zoo/collections/pets", f"{SCOPES}/zoo/collections", {"name": "pets"}, ["*", "zoo"]),
        (f"{SCOPES}/zoo", SCOPES, {"name": "zoo"}, ["*"]),
        (f"{BUCKETS}/default", BUCKETS, {"name": "default", "ramQuotaMB": 100}, []),
    ],
)
def test_roles_end_with_their_place(drop: str, create: str, form: dict[str, object], expected: list[str]) -> None:
    """A role at a dropped place is not reported, not even when a place of that name is created again."""
    manager = with_pets()
    roles = "data_reader[default],data_reader[default:zoo],data_reader[default:zoo:pets]"
    manager.submit("PUT", f"{GROUPS}/readers", roles=roles)
    manager.submit("PUT", f"{USERS}/ada", password="secret", roles=roles, groups="readers")
    manager.ask("DELETE", drop)
    found = [roles_of(manager), roles_of(manager, f"{GROUPS}/readers")]
    manager.submit("POST", create, **form)
    found += [roles_of(manager), roles_of(manager, f"{GROUPS}/readers")]

    assert [expected] * 4 == [[each["scope_name"] for each in roles] for roles in found]


def test_offered_roles(manager: Manager) -> None:
    """The list of roles has an asterisk for each place that a role can be limited to."""
    offered = {each["role"]: each for each in json.loads(manager.ask("GET", "/settings/rbac/roles").body)}

    for name, places in (("admin", 0), ("bucket_admin", 1), ("scope_admin", 2), ("data_reader", 3)):
        assert role(name, *["*"] * places) == {
            key: value for key, value in offered[name].items() if key not in ("name", "desc")
        }


@rows(
    ("method", "target", "form", "expected"),
    [
        ("GET", f"{USERS}/bob", {}, (404, "Unknown user.")),
        ("GET", "/settings/rbac/users/martian", {}, (404, "Unknown user domain.")),
        ("PUT", "/settings/rbac/users/martian/bob", {}, (404, "Unknown user domain.")),
        ("DELETE", f"{USERS}/bob", {}, (404, "User was not found.")),
        ("PUT", f"{USERS}/bob", {"roles": "admin"}, (400, '"password"')),
        ("PUT", f"{USERS}/bob", {"password": ""}, (400, '"password"')),
        ("PUT", f"{USERS}/bob", {"password": "short"}, (400, '"password"')),
        ("PUT", f"{USERS}/bob", {"password": "line\nfeed"}, (400, '"password"')),
        ("PUT", f"{USERS}/bob", {"password": "secret", "colour": "red"}, (400, '"colour"')),
        ("PUT", f"{USERS}/@bob", {"password": "secret"}, (400, '"_"')),
        ("PUT", f"{USERS}/b%20b", {"password": "secret"}, (400, '"_"')),
        ("PUT", f"{USERS}/b%3Ab", {"password": "secret"}, (400, '"_"')),
        ("PUT", f"{USERS}/{'b' * 129}", {"password": "secret"}, (400, '"_"')),
        ("PUT", f"{USERS}/bob", {"groups": "gone", "password": "secret"}, (400, "gone")),
        ("PUT", "/settings/rbac/users/external/bob", {"password": "secret"}, (400, '"password"')),
        ("POST", f"{USERS}/bob", {}, (404, "Not found")),
        ("PATCH", f"{USERS}/bob", {"password": "secret"}, (404, "User was not found.")),
        ("PATCH", f"{USERS}/bob", {}, (400, '"password"')),
        ("GET", f"{GROUPS}/gone", {}, (404, "Unknown group.")),
        ("DELETE", f"{GROUPS}/gone", {}, (404, "Group was not found.")),
        ("PUT", f"{GROUPS}/gone", {}, (400, '"roles"')),
        ("PUT", f"{GROUPS}/gone", {"roles": "", "name": "Gone"}, (400, '"name"')),
        ("PUT", f"{GROUPS}/a(b", {"roles": ""}, (400, '"_"')),
        ("POST", f"{GROUPS}/gone", {}, (404, "Not found")),
        ("GET", GROUPS, {}, (200, "[]")),
        ("GET", "/settings/rbac/users", {}, (200, "[]")),
        ("POST", CHANGE, {}, (400, '"password"')),
        ("POST", CHANGE, {"password": ""}, (400, '"password"')),
        ("POST", CHANGE, {"password": "five5"}, (400, '"password"')),
        ("POST", CHANGE, {"password": "secret", "name": "ada"}, (400, '"name"')),
    ],
)
def test_invalid_users_and_groups(
    manager: Manager, method: str, target: str, form: dict[str, object], expected: tuple[int, str]
) -> None:
    """Requests that are invalid or for absent users or groups get the expected status and words, and create nothing."""
    answered = manager.submit(method, target, **form)
    status, words = expected

    assert status == answered.status
    assert words in answered.body.decode()
    assert [b"[]", b"[]"] == [manager.ask("GET", path).body for path in ("/settings/rbac/users", GROUPS)]


def test_user_without_a_new_password_keeps_it(manager: Manager) -> None:
    """An update replaces everything except an omitted password; a PATCH changes the password only."""
    manager.submit("PUT", f"{USERS}/ada", name="Ada", password="secret", roles="admin")
    manager.submit("PUT", f"{USERS}/ada", roles="ro_admin")
    updated = manager.ask("GET", f"{USERS}/ada").document
    let_in = [status_for(manager, "ada", password) for password in ("secret", "other1")]
    manager.submit("PATCH", f"{USERS}/ada", password="other1")
    let_in += [status_for(manager, "ada", password) for password in ("secret", "other1")]

    assert ([role("ro_admin")], None) == (roles_of(manager), updated.get("name"))
    assert updated == manager.ask("GET", f"{USERS}/ada").document
    assert [200, 401, 401, 200] == let_in


def status_for(manager: Manager, name: str, password: str) -> int:
    """Return the status of a request by this user."""
    manager.authorization, own = basic(f"{name}:{password}"), manager.authorization
    status = manager.ask("GET", "/pools").status
    manager.authorization = own
    return status


def test_administrator_changes_the_own_password(manager: Manager) -> None:
    """The administrator's changed password applies immediately, also to KV."""
    changed = manager.submit("POST", CHANGE, password="other-secret")
    kv = NodeClient(manager.node)

    assert (200, 401) == (changed.status, manager.ask("GET", "/pools").status)
    assert [Status.AUTH_ERROR, Status.SUCCESS] == [
        kv.authenticate_plain(password=password).status for password in ("password", "other-secret")
    ]


def test_user_changes_the_own_password(manager: Manager) -> None:
    """A user's request changes that user's password, even if the user has the name of the administrator."""
    for name in ("ada", "Administrator"):
        manager.submit("PUT", f"{USERS}/{name}", password="first-secret", roles="admin")
    manager.authorization = basic("ada:first-secret")
    changed = [manager.submit("POST", CHANGE, password="second-secret").status]
    manager.authorization = basic("Administrator:first-secret")
    changed += [manager.submit("POST", CHANGE, password="third-secret").status]

    assert [200, 200] == changed
    assert [401, 200, 401, 401, 200, 200] == [
        status_for(manager, name, password)
        for name, password in (
            ("ada", "first-secret"),
            ("ada", "second-secret"),
            ("ada", "third-secret"),
            ("Administrator", "second-secret"),
            ("Administrator", "third-secret"),
            ("Administrator", "password"),
        )
    ]


def test_user_with_a_token_has_no_password() -> None:
    """A user with a token cannot change a password."""
    token = "eyJhbGciOiJub25lIn0.e30.c2ln"
    manager = Manager(FakeNode(FakeNodeOptions(tokens=(token,))))
    manager.authorization = f"Bearer {token}"

    assert 404 == manager.submit("POST", CHANGE, password="other-secret").status
    assert 200 == status_for(manager, "Administrator", "password")


def test_users_authenticate_to_kv(manager: Manager) -> None:
    """KV accepts a local user with the current password, in one step and by SCRAM, until the user is dropped."""
    manager.submit("PUT", f"{USERS}/ada", password="first-secret", roles="admin")
    manager.authorization = basic("ada:first-secret")
    manager.submit("POST", CHANGE, password="second-secret")
    kv = NodeClient(manager.node)
    found = [
        (kv.authenticate_plain("ada", password).status, kv.authenticate_scram("SCRAM-SHA1", "ada", password).status)
        for password in ("first-secret", "second-secret")
    ]
    administrator = kv.authenticate_scram("SCRAM-SHA1").status
    manager.authorization = basic("Administrator:password")
    manager.ask("DELETE", f"{USERS}/ada")

    assert [(Status.AUTH_ERROR,) * 2, (Status.SUCCESS,) * 2] == found
    assert Status.SUCCESS == administrator
    assert Status.AUTH_ERROR == kv.authenticate_plain("ada", "second-secret").status
    assert Status.AUTH_ERROR == kv.authenticate_plain("ad", "a\0second-secret").status


def test_user_name_that_scram_refuses(manager: Manager) -> None:
    """A user name that SASLprep reduces to nothing is refused like an unknown user."""
    manager.submit("PUT", f"{USERS}/%C2%AD", password="secret", roles="admin")
    kv = NodeClient(manager.node)
    refused = kv.ask(Opcode.SASL_AUTH, key=b"SCRAM-SHA1", value="n,,n=\u00ad,r=nonce".encode())

    assert Status.AUTH_ERROR == refused.status
