"""Management of the users and groups of a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trio.testing import MockClock

from triclinium import PasswordAuthenticator, errors
from triclinium.management import AuthDomain, Group, Origin, Role, RoleAndOrigins, User
from triclinium.testing import open_fake_cluster

READER, WRITER = Role("data_reader", "default"), Role("data_writer", "*")


async def test_create_get_and_drop_a_user(autojump_clock: MockClock) -> None:
    """A user has its own roles and those of its group, and is not listed after it is dropped."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.users()
        group = Group(name="makers", description="They make", roles={WRITER})
        await manager.upsert_group(group)
        ada = User(username="ada", display_name="Ada", groups={"makers"}, roles={READER}, password="geheim")
        await manager.upsert_user(ada)
        found = await manager.get_user("ada")

        assert replace(ada, password=None) == found.user
        assert AuthDomain.LOCAL is found.domain
        assert {
            RoleAndOrigins(READER, (Origin("user"),)),
            RoleAndOrigins(WRITER, (Origin("group", "makers"),)),
        } == set(found.effective_roles)
        assert [found] == list(await manager.get_all_users())
        assert [group] == list(await manager.get_all_groups())
        assert group == await manager.get_group("makers")

        await manager.upsert_user(replace(found.user, display_name="Countess"))
        assert "Countess" == (await manager.get_user("ada")).user.display_name

        await manager.drop_user("ada")
        await manager.drop_group("makers")
        assert ([], []) == (list(await manager.get_all_users()), list(await manager.get_all_groups()))


async def test_users_of_an_external_domain(autojump_clock: MockClock) -> None:
    """Each authentication domain has its own users."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        manager = cluster.users()
        await manager.upsert_user(User(username="ada", roles={READER}), domain=AuthDomain.EXTERNAL)

        assert [] == list(await manager.get_all_users())
        assert 1 == len(await manager.get_all_users(domain=AuthDomain.EXTERNAL))
        assert AuthDomain.EXTERNAL is (await manager.get_user("ada", domain=AuthDomain.EXTERNAL)).domain

        await manager.drop_user("ada", domain=AuthDomain.EXTERNAL)
        assert [] == list(await manager.get_all_users(domain=AuthDomain.EXTERNAL))


async def test_users_that_the_server_refuses(autojump_clock: MockClock) -> None:
    """A role or a group that the server refuses is a wrong argument, and the error does not show the password."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        for wrong in (User(username="ada", groups={"nobody"}), User(username="ada", roles={Role("emperor")})):
            with pytest.raises(errors.InvalidArgumentException) as caught:
                await cluster.users().upsert_user(replace(wrong, password="geheim"))

            assert "geheim" not in str(caught.value)
            assert "geheim" not in caught.value.context.to_json()


async def test_get_roles_lists_display_names(autojump_clock: MockClock) -> None:
    """``get_roles`` returns the roles that the server knows, with their display names."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        roles = {each.role.name: each for each in await cluster.users().get_roles()}

        assert "Full Admin" == roles["admin"].display_name
        assert Role("data_reader", "*") == roles["data_reader"].role


async def test_a_changed_password(autojump_clock: MockClock) -> None:
    """After a password change, the client needs a new authenticator."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        await cluster.users().change_password("new-secret")
        with pytest.raises(errors.AuthenticationFailureException):
            await cluster.users().get_all_users()
        cluster.set_authenticator(PasswordAuthenticator(fake.authenticator.username, "new-secret"))

        assert [] == list(await cluster.users().get_all_users())
