"""Perform one write of a Tenant. The only place where its passwords are made and handed on."""

from __future__ import annotations

import secrets
import string
from dataclasses import replace
from typing import assert_never

from hooks.core.errors import Taken
from hooks.effects.ports import Admin, Credential, Endpoint, Login, RowState, Services
from hooks.tenant import actions
from hooks.tenant.actions import Provision, Removal
from hooks.tenant.facts import Facts
from hooks.tenant.model import Identity
from hooks.tenant.world import World

PASSWORD_LENGTH = 32
PASSWORD_ALPHABET = string.ascii_letters + string.digits
"""Letters and digits: the password travels through URLs, pgpass and shell by its users' hands."""


def act(action: Provision, facts: Facts, world: World) -> None:
    """Perform one write towards a Ready Tenant, or raise EffectError."""
    match action:
        case actions.ReserveCredential() | actions.StoreCredential() | actions.TakeOverCredential():
            _keep(action, facts.spec.identity, world.services)
        case actions.CreateExtension():
            _install(action, facts, world)
        case actions.CreateRole(uid, _):
            world.admin().create_role(uid, _stored(facts))
        case actions.SetPassword(_):
            world.admin().set_password(_stored(facts))
        case (
            actions.InsertRow()
            | actions.RewriteRow()
            | actions.ReviveRow()
            | actions.TakeOverRow()
            | actions.RecordApproval()
        ):
            _record(action, world.admin())
        case _:
            _change(action, world.admin())


def _record(
    action: actions.InsertRow
    | actions.RewriteRow
    | actions.ReviveRow
    | actions.TakeOverRow
    | actions.RecordApproval,
    admin: Admin,
) -> None:
    match action:
        case actions.InsertRow(row):
            admin.insert_row(row)
        case actions.RewriteRow(row):
            admin.rewrite_row(row)
        case actions.ReviveRow(uid):
            admin.mark(uid, state="managed", was=frozenset({"unmanaged"}))
        case actions.TakeOverRow(old, new):
            admin.hand_over(old, new)
        case actions.RecordApproval(uid, approval):
            admin.record_approval(uid, approval)
        case _:
            assert_never(action)


def _change(
    action: actions.AdministerRole
    | actions.CreateDatabase
    | actions.SecureDatabase
    | actions.RecordExtensions,
    admin: Admin,
) -> None:
    match action:
        case actions.AdministerRole(role):
            admin.administer_role(role)
        case actions.CreateDatabase(database, owner):
            admin.create_database(database, owner=owner)
        case actions.SecureDatabase(uid, database):
            admin.secure_database(uid, database)
        case actions.RecordExtensions(uid, extensions):
            admin.record_extensions(uid, extensions)
        case _:
            assert_never(action)


def remove(action: Removal, world: World) -> None:
    """Perform one write towards a Tenant that is gone, or raise EffectError."""
    match action:
        case actions.MarkDeleting(uid):
            states: frozenset[RowState] = frozenset({"planned", "managed"})
            world.admin().mark(uid, state="deleting", was=states)
        case actions.ForbidLogin(role):
            world.admin().forbid_login(role)
        case actions.DropDatabase(database, oid):
            world.admin().drop_database(database, oid=oid)
        case actions.DropRole(role, oid):
            world.admin().drop_role(role, oid=oid)
        case actions.DestroyCredential(path):
            world.services.credentials.destroy(path)
        case actions.DeleteRow(uid):
            world.admin().delete_row(uid)
        case _:
            assert_never(action)


def retain(action: actions.MarkUnmanaged, world: World) -> None:
    """Let the database go its own way."""
    states: frozenset[RowState] = frozenset({"planned", "managed"})
    world.admin().mark(action.uid, state="unmanaged", was=states)


def _stored(facts: Facts) -> Login:
    """Return KV's login; a password reaches the server from there and nowhere else."""
    if isinstance(facts.credential, Credential) and facts.credential.login is not None:
        return facts.credential.login
    raise Taken("OpenBao", "the credential is not there any more")


def _keep(
    action: actions.ReserveCredential | actions.StoreCredential | actions.TakeOverCredential,
    identity: Identity,
    services: Services,
) -> None:
    store = services.credentials
    match action:
        case actions.ReserveCredential(path, instance, instance_uid):
            store.reserve(path, identity.owner(instance, instance_uid))
        case actions.TakeOverCredential(path, instance, instance_uid, old):
            store.reassign(path, identity.owner(instance, instance_uid), was=old)
        case actions.StoreCredential(path, username, after):
            store.store(path, Login(username, _password()), after=after)
        case _:
            assert_never(action)


def _password() -> str:
    return "".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(PASSWORD_LENGTH))


def _install(action: actions.CreateExtension, facts: Facts, world: World) -> None:
    endpoint: Endpoint = replace(facts.the_instance.endpoint, database=action.database)
    login = _stored(facts) if action.trusted else world.admin_login()
    world.services.postgres.create_extension(endpoint, login, action.extension)
