"""What the API double knows of each kind, and the errors it answers with.

Idea: a built-in kind (builtin.py) is described like a CRD, so one code path serves both.
`ApiError` carries what a Status object carries.

Limits: one served version is as good as another; there is no conversion.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.sandbox.validation import ObjectSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hooks.core.manifests import Manifest
    from hooks.sandbox.openapi import Problem


_MESSAGE_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object in one API version."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """Return the API group, empty for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """Return the resource with its group, as error messages name it."""
        return f"{self.plural}.{self.group}".rstrip(".")

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}".rstrip(".")


class ApiError(Exception):
    """A refusal: HTTP status, the reason for programs, the message for people.

    `details` says which object it is about: clients tell by it a missing object from a kind that
    is not served.
    """

    def __init__(
        self, status: int, reason: str, message: str, *, details: Manifest | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details


def _about(kind: Kind, name: str) -> Manifest:
    """Return the details of a Status; like the API server, `kind` holds the plural."""
    details: Manifest = {"name": name, "kind": kind.plural}
    return details | ({"group": kind.group} if kind.group else {})


def not_found(kind: Kind, name: str) -> ApiError:
    """Say that there is no such object."""
    message = f'{kind.resource} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_about(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    """Say that the name is taken."""
    message = f'{kind.resource} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    """Say that the stored object is another one than the writer believes."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", text, details=_about(kind, name))


def bad_request(message: str) -> ApiError:
    """Say that the request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def invalid(kind: Kind, name: str, problems: Iterable[Problem]) -> ApiError:
    """Say everything that is wrong with an object."""
    texts = [str(problem) for problem in problems]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {shown}')


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind and how the server treats it.

    Attributes:
        has_status: status is a subresource.
        has_generation: metadata.generation counts the changes of spec.
        needs_version: an update without a resourceVersion is refused.
        selectable: what a field selector may name beside metadata.name and metadata.namespace.
        immutable: paths to what no update may change.
    """

    kind: Kind
    schema: ObjectSchema
    has_status: bool
    has_generation: bool = True
    needs_version: bool = True
    selectable: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()


def resources_of(crd: Manifest) -> Iterator[Resource]:
    """Yield one resource for each served version of a CustomResourceDefinition."""
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version["served"]:
            yield Resource(
                Kind(
                    f"{spec['group']}/{version['name']}",
                    names["kind"],
                    names["plural"],
                    spec["scope"] == "Namespaced",
                ),
                ObjectSchema(version["schema"]["openAPIV3Schema"]),
                has_status="status" in version.get("subresources", {}),
                selectable=tuple(
                    field["jsonPath"].lstrip(".") for field in version.get("selectableFields", ())
                ),
            )


def event_about(obj: Manifest, reason: str, message: str, type_: str) -> Manifest:
    """Return an Event, named by what it says; of a cluster-scoped object it is in default."""
    about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    about |= {key: obj["metadata"].get(key, "") for key in ("namespace", "name", "uid")}
    digest = hashlib.sha256(f"{about}{type_}{reason}{message}".encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "namespace": about["namespace"] or "default",
            "name": f"{about['name']}.{digest}",
        },
        "involvedObject": about,
        "type": type_,
        "reason": reason,
        "message": message[:_MESSAGE_LENGTH],
    }


SECRET = Kind("v1", "Secret", "secrets", namespaced=True)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", namespaced=True)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
EVENT = Kind("v1", "Event", "events", namespaced=True)
EXTERNAL_SECRET = Kind(
    "external-secrets.io/v1", "ExternalSecret", "externalsecrets", namespaced=True
)
SERVICE = Kind("v1", "Service", "services", namespaced=True)
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts", namespaced=True)
POD = Kind("v1", "Pod", "pods", namespaced=True)
JOB = Kind("batch/v1", "Job", "jobs", namespaced=True)
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles", namespaced=True)
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True)
