"""Requests about the users, groups and roles of a fake cluster.

Source: SDK-RFC 0054, UserManager; ns_server of version 7.6, "menelaus_web_rbac"; Couchbase Server documentation, "Role
Based Access Control (RBAC) API".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from triclinium_core.testing.fakes.services.answers import ServiceReply, as_json
from triclinium_core.testing.fakes.services.connection.credentials import basic_credentials
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management.roles import offered_roles, read_roles
from triclinium_core.testing.fakes.services.management.user_store import DOMAINS, LOCAL, FakeGroup, FakeUser
from triclinium_core.testing.fakes.store.state import NodeState

PASSWORD_SIZE_MIN = 6
"""Minimum number of characters of a password, by the default policy of the server."""
NAME_SIZE_MAX = 128
"""Maximum number of characters of the name of a user or group."""

_NAME_EXCLUDES = frozenset('()<>,;:\\"/[]?={}')
"""Characters that the name of a user or group must not contain, besides spaces and control characters."""

_DELETE = "\x7f"


def answer(node: NodeState, request: FakeRequest) -> ServiceReply | None:
    """Answer a request about users, groups or roles; return None for any other request."""
    users, buckets = node.cluster.services.users, node.cluster.buckets
    match request.method, request.segments:
        case "GET", ("settings", "rbac", "roles"):
            return as_json(list(offered_roles()))
        case "GET", ("settings", "rbac", "users"):
            return as_json([users.described_user(*key, buckets) for key in users.users])
        case "GET", ("settings", "rbac", "users", domain):
            if domain not in DOMAINS:
                return _missing("Unknown user domain.")
            return as_json([users.described_user(*key, buckets) for key in users.users if key[0] == domain])
        case _, ("settings", "rbac", "users", domain, name):
            return _about_user(node, request, domain, name)
        case "GET", ("settings", "rbac", "groups"):
            return as_json([users.described_group(name, buckets) for name in users.groups])
        case _, ("settings", "rbac", "groups", name):
            return _about_group(node, request, name)
        case "POST", ("controller", "changePassword"):
            return _change_own_password(node, request)
        case _:
            return None


def _about_user(node: NodeState, request: FakeRequest, domain: str, name: str) -> ServiceReply | None:
    users = node.cluster.services.users
    if domain not in DOMAINS:
        return _missing("Unknown user domain.") if request.method in ("GET", "PUT", "DELETE") else None
    match request.method:
        case "GET":
            if (domain, name) not in users.users:
                return _missing("Unknown user.")
            return as_json(users.described_user(domain, name, node.cluster.buckets))
        case "DELETE":
            if users.users.pop((domain, name), None) is None:
                return _missing("User was not found.")
            return as_json("")
        case "PUT":
            return _put_user(node, domain, name, request.form)
        case "PATCH" if domain == LOCAL:
            # Source: ns_server before version 8.0, where the method changes only the password.
            return _refused_password(request.form) or _set_password(node, name, request.form["password"])
        case _:
            return None


def _put_user(node: NodeState, domain: str, name: str, form: Mapping[str, str]) -> ServiceReply:
    users, known = node.cluster.services.users, node.cluster.services.users.users.get((domain, name))
    wrong_name = _wrong_name(name, "Username")
    if wrong_name is not None:
        return _refused({"_": wrong_name})
    errors = _unsupported(form, ("name", "groups", "roles", *(("password",) if domain == LOCAL else ())))
    groups = tuple(group for group in map(str.strip, form.get("groups", "").split(",")) if group)
    unknown = [group for group in groups if group not in users.groups]
    if unknown:
        errors["groups"] = f"Groups do not exist: {','.join(unknown)}"
    roles = read_roles(form.get("roles", ""), node.cluster.buckets)
    if isinstance(roles, str):
        errors["roles"] = roles
    password = form.get("password")
    if password is not None and domain == LOCAL and (wrong := wrong_password(password)) is not None:
        errors["password"] = wrong
    if errors or isinstance(roles, str):
        return _refused(errors)
    if domain == LOCAL and password is None and known is None:
        return _refused({"password": "Password is required for new user."})
    user = FakeUser(users.new_uuid(), roles) if known is None else known
    user = replace(user, roles=roles, groups=groups, display_name=form.get("name"))
    if password is not None:
        user = replace(user, password=password, password_changed_at=node.documents.wall_seconds)
    users.users[domain, name] = user
    return as_json("")


def _about_group(node: NodeState, request: FakeRequest, name: str) -> ServiceReply | None:
    users = node.cluster.services.users
    match request.method:
        case "GET":
            if name not in users.groups:
                return _missing("Unknown group.")
            return as_json(users.described_group(name, node.cluster.buckets))
        case "DELETE":
            return as_json("") if users.drop_group(name) else _missing("Group was not found.")
        case "PUT":
            return _put_group(node, name, request.form)
        case _:
            return None


def _put_group(node: NodeState, name: str, form: Mapping[str, str]) -> ServiceReply:
    wrong_name = _wrong_name(name, "Group name")
    if wrong_name is not None:
        return _refused({"_": wrong_name})
    errors = _unsupported(form, ("description", "roles", "ldap_group_ref"))
    roles = read_roles(form["roles"], node.cluster.buckets) if "roles" in form else "The value must be supplied"
    if isinstance(roles, str):
        errors["roles"] = roles
    if errors or isinstance(roles, str):
        return _refused(errors)
    group = FakeGroup(roles, form.get("description"), form.get("ldap_group_ref"))
    node.cluster.services.users.groups[name] = group
    return as_json("")


def _change_own_password(node: NodeState, request: FakeRequest) -> ServiceReply:
    """Change the password of the user who sent the request: that of the administrator, or that of a local user."""
    credentials = basic_credentials(request) or b""
    administrator = f"{node.options.username}:{node.options.password}".encode()
    is_local = node.cluster.services.users.knows(credentials)
    if credentials != administrator and not is_local:
        # The user has a token or a certificate, and no password here.
        return _missing("Changing of password is not allowed for this user.")
    refused = _refused_password(request.form)
    if refused is not None:
        return refused
    password = request.form["password"]
    if credentials != administrator:
        return _set_password(node, credentials.partition(b":")[0].decode(), password)
    cluster = node.cluster
    cluster.nodes[:] = [replace(options, password=password) for options in cluster.nodes]
    return ServiceReply()


def _set_password(node: NodeState, name: str, password: str) -> ServiceReply:
    users = node.cluster.services.users.users
    known = users.get((LOCAL, name))
    if known is None:
        return _missing("User was not found.")
    users[LOCAL, name] = replace(known, password=password, password_changed_at=node.documents.wall_seconds)
    return ServiceReply()


def _refused_password(form: Mapping[str, str]) -> ServiceReply | None:
    """Return the refusal of a form that changes a password, or None if the form is valid."""
    errors = _unsupported(form, ("password",))
    wrong = wrong_password(form["password"]) if "password" in form else "The value must be supplied"
    if wrong is not None:
        errors["password"] = wrong
    return _refused(errors) if errors else None


def wrong_password(password: str) -> str | None:
    """Return the reason why a password is invalid, or None if it is valid."""
    if len(password) < PASSWORD_SIZE_MIN:
        return f"The password must be at least {PASSWORD_SIZE_MIN} characters long."
    if any(character < " " or character == _DELETE for character in password):
        return "The password must not contain control characters"
    return None


def _wrong_name(name: str, what: str) -> str | None:
    if not name:
        return f"{what} must not be empty"
    if len(name) > NAME_SIZE_MAX:
        return f"{what} may not exceed {NAME_SIZE_MAX} characters"
    if name.startswith("@"):
        return f"{what} cannot start with '@'"
    if any(character <= " " or character == _DELETE or character in _NAME_EXCLUDES for character in name):
        return f"{what} must not contain spaces, control characters or any of {''.join(sorted(_NAME_EXCLUDES))}"
    return None


def _unsupported(form: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    return {field: "Unsupported key" for field in form if field not in known}


def _missing(text: str) -> ServiceReply:
    return as_json(text, 404)


def _refused(errors: Mapping[str, str]) -> ServiceReply:
    return as_json({"errors": errors}, 400)
