"""The writes a Tenant may need, as data without secrets: one action is one write."""

from __future__ import annotations

from dataclasses import dataclass

from hooks.effects.ports import Row


@dataclass(frozen=True, slots=True)
class InsertRow:
    """Record the intent in the registry."""

    row: Row


@dataclass(frozen=True, slots=True)
class RewriteRow:
    """Change the names of an intent of which nothing was made yet."""

    row: Row


@dataclass(frozen=True, slots=True)
class ReviveRow:
    """Take an unmanaged row of this very Tenant back under management."""

    uid: str


@dataclass(frozen=True, slots=True)
class TakeOverRow:
    """Take the row of the Tenant that retained the database, as approved on the Instance."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class TakeOverCredential:
    """Take the credential of the Tenant that retained the database."""

    path: str
    instance: str
    instance_uid: str
    old: str


@dataclass(frozen=True, slots=True)
class RecordApproval:
    """Record that an approval was used, so that it works once."""

    uid: str
    approval: str


@dataclass(frozen=True, slots=True)
class ReserveCredential:
    """Mark the KV path as this Tenant's, before there is a value."""

    path: str
    instance: str
    instance_uid: str


@dataclass(frozen=True, slots=True)
class StoreCredential:
    """Generate a password and store it; it stays the same from then on."""

    path: str
    username: str
    after: int


@dataclass(frozen=True, slots=True)
class CreateRole:
    """Create the owner login."""

    uid: str
    role: str


@dataclass(frozen=True, slots=True)
class AdministerRole:
    """Make the admin a member of the role."""

    role: str


@dataclass(frozen=True, slots=True)
class SetPassword:
    """Give the role the password that KV holds."""

    role: str


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """Create the database."""

    database: str
    owner: str


@dataclass(frozen=True, slots=True)
class SecureDatabase:
    """Take PUBLIC's rights away and record the OID."""

    uid: str
    database: str


@dataclass(frozen=True, slots=True)
class CreateExtension:
    """Install an extension: a trusted one as the tenant, another one as the admin."""

    database: str
    extension: str
    trusted: bool


@dataclass(frozen=True, slots=True)
class RecordExtensions:
    """Record the installed extensions as the append-only baseline."""

    uid: str
    extensions: frozenset[str]


@dataclass(frozen=True, slots=True)
class MarkDeleting:
    """Record, before anything is destroyed, that Delete was decided."""

    uid: str


@dataclass(frozen=True, slots=True)
class MarkUnmanaged:
    """Record that the Tenant went and its database stays."""

    uid: str


@dataclass(frozen=True, slots=True)
class ForbidLogin:
    """Keep new sessions out."""

    role: str


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """Drop the database with this OID."""

    database: str
    oid: int


@dataclass(frozen=True, slots=True)
class DropRole:
    """Drop the role with this OID."""

    role: str
    oid: int


@dataclass(frozen=True, slots=True)
class DestroyCredential:
    """Delete all versions and the metadata of the credential."""

    path: str


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """Forget the Tenant."""

    uid: str


Provision = (
    InsertRow
    | RewriteRow
    | ReviveRow
    | TakeOverRow
    | TakeOverCredential
    | RecordApproval
    | ReserveCredential
    | StoreCredential
    | CreateRole
    | AdministerRole
    | SetPassword
    | CreateDatabase
    | SecureDatabase
    | CreateExtension
    | RecordExtensions
)
"""What a live Tenant may need, in the order of its gates."""

Removal = MarkDeleting | ForbidLogin | DropDatabase | DropRole | DestroyCredential | DeleteRow
"""What a Tenant with policy Delete may need, in the order of its gates."""

Action = Provision | Removal
