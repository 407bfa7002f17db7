"""What External Secrets makes of an ExternalSecret and the values it found: the Secret.

Pure functions, for the double in projector.py. Messages are the real controller's.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import EXTERNAL_SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hooks.core.manifests import Manifest

OWNER_LABEL = "reconcile.external-secrets.io/created-by"
MANAGED_LABEL = "reconcile.external-secrets.io/managed"
HASH_ANNOTATION = "reconcile.external-secrets.io/data-hash"
_PLACEHOLDER = re.compile(r"{{-?\s*(.*?)\s*-?}}")
_FIELD = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)")


class Refused(Exception):
    """An ExternalSecret cannot be synced.

    Attributes:
        message: what its condition says.
        retry: whether it is worth another try without a change.
    """

    def __init__(self, message: str, detail: str, *, retry: bool = True) -> None:
        super().__init__(f"{message}: {detail}")
        self.message = message
        self.retry = retry


def target_name(es: Manifest) -> str:
    """Return the name of the Secret."""
    return str(es["spec"].get("target", {}).get("name") or manifests.name(es))


def digest(value: object) -> str:
    """Return a hash that fits into a label."""
    return hashlib.sha3_224(json.dumps(value, sort_keys=True).encode()).hexdigest()


def owner_digest(es: Manifest) -> str:
    """Return what the created-by label of an ExternalSecret's Secrets is."""
    return digest(f"{manifests.namespace(es)}/{manifests.name(es)}")


def synced_version(es: Manifest) -> str:
    """Return generation and hash of labels and annotations: what a sync was made for."""
    meta = manifests.metadata(es)
    return f"{manifests.generation(es)}-{digest([meta.get('annotations'), meta.get('labels')])}"


def is_valid(secret: Manifest | None) -> bool:
    """Say whether a Secret is there with the data that it was left with."""
    if secret is None or manifests.metadata(secret).get("labels", {}).get(MANAGED_LABEL) != "true":
        return False
    return manifests.annotations(secret).get(HASH_ANNOTATION) == digest(secret.get("data") or {})


def projected(es: Manifest, secret: Manifest | None, values: Mapping[str, str]) -> Manifest:
    """Return the Secret as it should be; what it held before, and who wrote that, is dropped.

    Args:
        es: the ExternalSecret.
        secret: the one that exists.
        values: what was read, by secretKey.

    Raises:
        Refused: it belongs to somebody else, is immutable, or the template makes no sense.
    """
    _require_ownable(es, secret)
    meta = {"name": target_name(es), "namespace": manifests.namespace(es)}
    wanted = copy.deepcopy(secret) or {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
    target = es["spec"].get("target", {})
    template = target.get("template")
    texts = dict(values) if template is None else _rendered(template, values)
    wanted["type"] = (template or {}).get("type") or "Opaque"
    wanted["data"] = {
        key: base64.b64encode(text.encode()).decode() for key, text in sorted(texts.items())
    }
    if target.get("immutable"):
        wanted["immutable"] = True
    _describe(wanted, es, es["metadata"] if template is None else template.get("metadata") or {})
    unchanged = {key: (secret or {}).get(key) for key in ("data", "type")}
    if (secret or {}).get("immutable") and unchanged != {key: wanted[key] for key in unchanged}:
        raise Refused("could not update secret, target is immutable", "secret", retry=False)
    return wanted


def _describe(secret: Manifest, es: Manifest, source: Manifest) -> None:
    """Set owner, labels and annotations; without a template they are the ExternalSecret's."""
    meta = secret["metadata"]
    others = [
        reference
        for reference in meta.get("ownerReferences") or ()
        if reference.get("uid") != manifests.uid(es) and not reference.get("controller")
    ]
    meta["ownerReferences"] = [
        *others,
        {
            "apiVersion": EXTERNAL_SECRET.api_version,
            "kind": EXTERNAL_SECRET.kind,
            "name": manifests.name(es),
            "uid": manifests.uid(es),
            "controller": True,
            "blockOwnerDeletion": True,
        },
    ]
    meta["labels"] = {
        **(meta.get("labels") or {}),
        **(source.get("labels") or {}),
        OWNER_LABEL: owner_digest(es),
        MANAGED_LABEL: "true",
    }
    meta["annotations"] = {
        **(meta.get("annotations") or {}),
        **(source.get("annotations") or {}),
        HASH_ANNOTATION: digest(secret["data"]),
    }


def _require_ownable(es: Manifest, secret: Manifest | None) -> None:
    """Refuse a Secret that another object controls; as in the real one, the UID does not count."""
    for reference in manifests.metadata(secret or {}).get("ownerReferences") or ():
        if not reference.get("controller"):
            continue
        group = str(reference.get("apiVersion")).rpartition("/")[0]
        ours = (group, reference.get("kind")) == (EXTERNAL_SECRET.group, EXTERNAL_SECRET.kind)
        name = str(reference.get("name"))
        if ours and name != manifests.name(es):
            raise Refused("target is owned by another ExternalSecret", name, retry=False)
        if not ours:
            raise Refused("failed to take ownership of target secret", name, retry=False)


def _rendered(template: Manifest, values: Mapping[str, str]) -> dict[str, str]:
    if template.get("templateFrom"):
        raise Refused("could not update secret", "templateFrom is not served by this double")
    rendered = {key: _text(text, values) for key, text in (template.get("data") or {}).items()}
    if not rendered and template.get("mergePolicy") != "Replace":
        return dict(values)
    return rendered if template.get("mergePolicy") != "Merge" else {**values, **rendered}


def _text(text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        field = _FIELD.fullmatch(match[1])
        if field is None or field[1] not in values:
            raise Refused("could not update secret", f"error applying template: {match[1]}")
        return values[field[1]]

    return _PLACEHOLDER.sub(value, text)
