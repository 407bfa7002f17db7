"""The kinds that the API double serves without a CRD.

Limits: only what somebody here may write wrongly is described by a schema; the rest of a spec is
taken as it is, and only a Job gets defaults. A deleted Pod is gone at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hooks.core import manifests
from hooks.sandbox.kinds import (
    CONFIG_MAP,
    EVENT,
    EXTERNAL_SECRET,
    JOB,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
    Resource,
)
from hooks.sandbox.validation import PRESERVE, ObjectSchema

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_ANYTHING = {"type": "object", PRESERVE: True}
_NAMES = {"type": "array", "items": _TEXT}


def _object(*required: str, **properties: Any) -> Manifest:  # noqa: ANN401 - schemas are untyped
    return {"type": "object", "required": list(required), "properties": properties}


def _plain(kind: Kind, **properties: Any) -> Resource:  # noqa: ANN401 - as above
    """Describe a kind without status and generation."""
    schema = ObjectSchema(_object(**properties))
    return Resource(kind, schema, has_status=False, has_generation=False, needs_version=False)


_JOB_SPEC = _object(
    "template",
    template=_object(spec=_ANYTHING, metadata=_ANYTHING),
    **{
        key: {"type": "integer", "format": "int32", "minimum": 0, "default": default}
        for key, default in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6))
    },
    activeDeadlineSeconds={"type": "integer", "format": "int64", "minimum": 1},
    ttlSecondsAfterFinished={"type": "integer", "format": "int32", "minimum": 0},
    completionMode=_TEXT | {"default": "NonIndexed"},
    podReplacementPolicy=_TEXT | {"default": "TerminatingOrFailed"},
    suspend={"type": "boolean", "default": False},
    manualSelector={"type": "boolean"},
    selector=_ANYTHING,
)
_RULE = _object("verbs", verbs=_NAMES, apiGroups=_NAMES, resources=_NAMES, resourceNames=_NAMES) | {
    PRESERVE: True
}
_SUBJECT = _object("kind", "name", kind=_TEXT, name=_TEXT, namespace=_TEXT, apiGroup=_TEXT)
_ROLE_REF = _object("apiGroup", "kind", "name", apiGroup=_TEXT, kind=_TEXT, name=_TEXT)

BUILTIN = (
    _plain(
        SECRET,
        data=_TEXTS,
        stringData=_TEXTS,
        type=_TEXT | {"default": "Opaque"},
        immutable={"type": "boolean"},
    ),
    _plain(CONFIG_MAP, data=_TEXTS, binaryData=_TEXTS, immutable={"type": "boolean"}),
    Resource(
        NAMESPACE,
        ObjectSchema(_object(spec=_ANYTHING, status=_ANYTHING)),
        has_status=True,
        has_generation=False,
        needs_version=False,
    ),
    Resource(
        EVENT,
        ObjectSchema(_ANYTHING),
        has_status=False,
        has_generation=False,
        needs_version=False,
    ),
    Resource(
        EXTERNAL_SECRET,
        ObjectSchema(_object(spec=_ANYTHING, status=_ANYTHING)),
        has_status=True,
    ),
    Resource(
        SERVICE,
        ObjectSchema(_object(spec=_ANYTHING, status=_ANYTHING)),
        has_status=True,
        has_generation=False,
        needs_version=False,
    ),
    Resource(
        POD,
        ObjectSchema(_object("spec", spec=_ANYTHING, status=_ANYTHING)),
        has_status=True,
        needs_version=False,
    ),
    Resource(
        JOB,
        ObjectSchema(_object("spec", spec=_JOB_SPEC, status=_ANYTHING)),
        has_status=True,
        needs_version=False,
        immutable=("spec.template", "spec.selector", "spec.completions"),
    ),
    _plain(
        SERVICE_ACCOUNT,
        automountServiceAccountToken={"type": "boolean"},
        secrets={"type": "array", "items": _ANYTHING},
        imagePullSecrets={"type": "array", "items": _ANYTHING},
    ),
    _plain(ROLE, rules={"type": "array", "items": _RULE}),
    Resource(
        ROLE_BINDING,
        ObjectSchema(
            _object("roleRef", roleRef=_ROLE_REF, subjects={"type": "array", "items": _SUBJECT})
        ),
        has_status=False,
        has_generation=False,
        needs_version=False,
        immutable=("roleRef",),
    ),
)


def complete(obj: Manifest) -> None:
    """Add what the server derives from the UID of a new object: a Job's selector and labels."""
    if (obj["apiVersion"], obj["kind"]) != (JOB.api_version, JOB.kind):
        return
    spec, uid = obj["spec"], manifests.uid(obj)
    if spec.get("manualSelector"):
        return
    labels = job_labels(obj)
    metadata = spec["template"].setdefault("metadata", {})
    metadata["labels"] = (metadata.get("labels") or {}) | labels
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def job_labels(job: Manifest) -> dict[str, str]:
    """Return the labels by which the Pods of a Job are found."""
    name, uid = manifests.name(job), manifests.uid(job)
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
