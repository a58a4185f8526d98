"""Manager of the users, groups and roles of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium._management.manager import Manager
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.management import users
from triclinium_core.services.service_request import Acknowledged
from triclinium_core.telemetry.tracing import RequestSpan


class UserManager(Manager):
    """Users, groups and roles of a cluster.

    The reference describes the common parts of all managers under "Managing a cluster".

    Source: SDK-RFC 0054 "UserManager".
    """

    async def get_user(
        self,
        username: str,
        *,
        domain: users.AuthDomain = users.AuthDomain.LOCAL,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> users.UserAndMetadata:
        """Return a user, with its direct roles and those of its groups.

        Raises:
            UserNotFoundException: the domain has no user of that name.
            InvalidArgumentException: ``username`` is not a valid user name.
        """
        return (
            await self._driver.perform(users.UserResult, users.GetUser, retry_strategy, parent_span, username, domain)
        ).user

    async def get_all_users(
        self,
        *,
        domain: users.AuthDomain = users.AuthDomain.LOCAL,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> Sequence[users.UserAndMetadata]:
        """Return all users of a domain."""
        return (
            await self._driver.perform(users.AllUsersResult, users.GetAllUsers, retry_strategy, parent_span, domain)
        ).users

    async def upsert_user(
        self,
        user: users.User,
        *,
        domain: users.AuthDomain = users.AuthDomain.LOCAL,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create a user, or give an existing user the display name, roles and groups of ``user``.

        The password changes only if ``user`` has one; a new local user needs a password.

        Raises:
            InvalidArgumentException: a role or a group does not exist, the server refuses the password, an external
                user has a password, or ``user`` has ``unknown`` parts, which an update would lose.
        """
        await self._driver.perform(Acknowledged, users.UpsertUser, retry_strategy, parent_span, user, domain)

    async def drop_user(
        self,
        username: str,
        *,
        domain: users.AuthDomain = users.AuthDomain.LOCAL,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Remove a user.

        Raises:
            UserNotFoundException: the domain has no user of that name.
            InvalidArgumentException: ``username`` is not a valid user name.
        """
        await self._driver.perform(Acknowledged, users.DropUser, retry_strategy, parent_span, username, domain)

    async def change_password(
        self,
        new_password: str,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Change the password of the client's user.

        Afterwards new connections are refused, and HTTP requests fail with ``AuthenticationFailureException``, until
        the client gets the new password: ``cluster.set_authenticator(PasswordAuthenticator(username, new_password))``.

        Raises:
            InvalidArgumentException: the server refuses the password.
        """
        await self._driver.perform(Acknowledged, users.ChangePassword, retry_strategy, parent_span, new_password)

    async def get_roles(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[users.RoleAndDescription]:
        """Return all roles of the server."""
        return (await self._driver.perform(users.RolesResult, users.GetRoles, retry_strategy, parent_span)).roles

    async def get_group(
        self, group_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> users.Group:
        """Return a group.

        Raises:
            GroupNotFoundException: the group does not exist.
            InvalidArgumentException: ``group_name`` is not a valid group name.
        """
        return (
            await self._driver.perform(users.GroupResult, users.GetGroup, retry_strategy, parent_span, group_name)
        ).group

    async def get_all_groups(
        self, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> Sequence[users.Group]:
        """Return all groups."""
        return (
            await self._driver.perform(users.AllGroupsResult, users.GetAllGroups, retry_strategy, parent_span)
        ).groups

    async def upsert_group(
        self,
        group: users.Group,
        *,
        retry_strategy: AnyRetryStrategy | None = None,
        parent_span: RequestSpan | None = None,
    ) -> None:
        """Create a group, or change an existing one.

        Raises:
            InvalidArgumentException: a role does not exist, or ``group`` has ``unknown`` parts, which an update would
                lose.
        """
        await self._driver.perform(Acknowledged, users.UpsertGroup, retry_strategy, parent_span, group)

    async def drop_group(
        self, group_name: str, *, retry_strategy: AnyRetryStrategy | None = None, parent_span: RequestSpan | None = None
    ) -> None:
        """Remove a group. The users of the group remain.

        Raises:
            GroupNotFoundException: the group does not exist.
            InvalidArgumentException: ``group_name`` is not a valid group name.
        """
        await self._driver.perform(Acknowledged, users.DropGroup, retry_strategy, parent_span, group_name)
