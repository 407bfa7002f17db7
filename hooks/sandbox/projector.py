"""A double of External Secrets: it projects what a real OpenBao holds into Secrets.

Idea: one reconcile of one ExternalSecret does what the real controller does with creationPolicy
Owner: finalizer, read, take the Secret over, write, report. Between refreshes nothing is read as
long as the ExternalSecret and the Secret's data are as they were left.

Limits: every secretStoreRef means the one OpenBao, `property` is a key, templates know only
`{{ .key }}`. Of the policies there are refreshPolicy Periodic, creationPolicy Owner and
deletionPolicy Retain. A label that leaves the template stays on the Secret.
"""

from __future__ import annotations

import copy
import json
import threading
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import requests

from hooks.core import manifests
from hooks.sandbox.kinds import EXTERNAL_SECRET, SECRET, ApiError
from hooks.sandbox.projector_secret import (
    MANAGED_LABEL,
    OWNER_LABEL,
    Refused,
    is_valid,
    owner_digest,
    projected,
    synced_version,
    target_name,
)
from hooks.sandbox.runner_config import duration
from hooks.sandbox.runner_queue import Time, WorkQueue
from hooks.sandbox.runner_state import Item
from hooks.sandbox.runner_writes import add_finalizer, remove_finalizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Change, Cluster

FINALIZER = "externalsecrets.external-secrets.io/externalsecret-cleanup"
_TIMEOUT, _STOP_TIMEOUT = 5.0, 20.0
_UNREADABLE = "could not get secret data from provider"


@dataclass(frozen=True, slots=True)
class KvStore:
    """A KV v2 mount of an OpenBao, and a file with a token that may read it."""

    address: str
    mount: str
    token_file: Path
    ca_file: Path

    def read(self, key: str, version: str = "") -> dict[str, Any]:
        """Return what is stored under a key, relative to the mount; `Refused` when it cannot."""
        url = f"{self.address}/v1/{self.mount}/data/{quote(key)}"
        with requests.Session() as session:
            # Neither a proxy nor a .netrc of whoever runs this has a say.
            session.trust_env = False
            try:
                answer = session.get(
                    url,
                    headers={"X-Vault-Token": self.token_file.read_text().strip()},
                    params={"version": version} if version else {},
                    timeout=_TIMEOUT,
                    verify=str(self.ca_file),
                    allow_redirects=False,
                )
            except (OSError, requests.RequestException) as error:
                raise Refused(_UNREADABLE, f"{key}: {type(error).__name__}") from None
        if answer.status_code != requests.codes.ok:
            raise Refused(_UNREADABLE, f"{key}: OpenBao answered {answer.status_code}")
        found: dict[str, Any] = answer.json()["data"]["data"]
        return found


class Projector:
    """The double's controller; a test reconciles all, the sandbox lets a thread do it."""

    def __init__(self, cluster: Cluster, store: KvStore, now: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = store
        self._now = now
        self._queue = _queue()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Reconcile in a thread, on events and when a refresh is due, until `stop`."""
        self._queue = _queue()
        self._unsubscribe = self._cluster.subscribe(self._note)
        for es in self._cluster.list(EXTERNAL_SECRET):
            self._queue.add(_item(es))
        self._thread = threading.Thread(target=self._work, name="projector", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; stopping twice is harmless."""
        self._unsubscribe()
        self._queue.close()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT)

    def reconcile_all(self) -> None:
        """Reconcile each ExternalSecret once, in this thread."""
        for es in self._cluster.list(EXTERNAL_SECRET):
            self._reconcile(_item(es))

    def _note(self, change: Change, obj: Manifest, /) -> None:
        """Queue what an event is about: an ExternalSecret, or those whose Secret it is."""
        if obj["kind"] == EXTERNAL_SECRET.kind and change != "DELETED":
            self._queue.add(_item(obj))
        if obj["kind"] == SECRET.kind and _label(obj, MANAGED_LABEL) == "true":
            for es in self._cluster.list(EXTERNAL_SECRET, manifests.namespace(obj)):
                if target_name(es) == manifests.name(obj):
                    self._queue.add(_item(es))

    def _work(self) -> None:
        while (item := self._queue.wait()) is not None:
            if self._reconcile(item):
                self._queue.forget(item)
            else:
                self._queue.add_failed(item)
            self._queue.done(item)

    def _reconcile(self, item: Item) -> bool:
        """Do what is due; say whether it is done, or else to be tried again."""
        try:
            es = self._cluster.get(EXTERNAL_SECRET, item.namespace, item.name)
            if es is None:
                return True
            if manifests.deleting(es):
                # The Secret goes with its owner.
                self._change(es, remove_finalizer(FINALIZER))
                return True
            es = self._change(es, add_finalizer(FINALIZER))
            secret = self._cluster.get(SECRET, item.namespace, target_name(es))
            if self._is_due(es, secret):
                self._refresh(es, secret)
        except ApiError:
            # Somebody else wrote in between.
            return False
        except Refused as error:
            return not error.retry
        interval = _interval(es)
        if interval > 0:
            self._queue.add_after(item, interval)
        return True

    def _refresh(self, es: Manifest, secret: Manifest | None) -> None:
        """Read, write and report.

        Raises:
            Refused: It cannot be done; this is reported too.
        """
        start = self._now()
        try:
            wanted = projected(es, secret, self._values(es))
            self._drop_former_targets(es)
            if secret is None:
                self._cluster.create(wanted)
            elif wanted != secret:
                self._cluster.replace(wanted)
        except Refused as error:
            self._cluster.record_event(es, "UpdateFailed", str(error))
            self._report(es, _condition("False", "SecretSyncedError", error.message), {})
            raise
        synced = {
            "refreshTime": _text(start),
            "syncedResourceVersion": synced_version(es),
            "binding": {"name": target_name(es)},
        }
        self._report(es, _condition("True", "SecretSynced", "secret synced"), synced)

    def _values(self, es: Manifest) -> dict[str, str]:
        values: dict[str, str] = {}
        for entry in es["spec"].get("data") or ():
            reference = entry["remoteRef"]
            found: Any = self._store.read(reference["key"], str(reference.get("version") or ""))
            if reference.get("property"):
                if reference["property"] not in found:
                    detail = f"{reference['key']}: no property {reference['property']}"
                    raise Refused(_UNREADABLE, detail)
                found = found[reference["property"]]
            values[entry["secretKey"]] = found if isinstance(found, str) else json.dumps(found)
        return values

    def _is_due(self, es: Manifest, secret: Manifest | None) -> bool:
        status = es.get("status") or {}
        last, interval = manifests.timestamp(status.get("refreshTime")), _interval(es)
        if not is_valid(secret) or last is None:
            return True
        if interval <= 0:
            return False
        changed = status.get("syncedResourceVersion") != synced_version(es)
        now = self._now()
        return changed or last > now or last + timedelta(seconds=interval) <= now

    def _drop_former_targets(self, es: Manifest) -> None:
        """Delete the Secret of another name that this ExternalSecret made before."""
        for secret in self._cluster.list(SECRET, manifests.namespace(es)):
            ours = _label(secret, OWNER_LABEL) == owner_digest(es)
            if ours and manifests.name(secret) != target_name(es):
                self._cluster.delete(SECRET, manifests.namespace(es), manifests.name(secret))

    def _report(self, es: Manifest, condition: Manifest, synced: Manifest) -> None:
        before = manifests.condition(es, "Ready")
        same = before.get("status") == condition["status"]
        since = before["lastTransitionTime"] if same else _text(self._now())
        ready = condition | {"lastTransitionTime": since}
        status = {**(es.get("status") or {}), **synced, "conditions": [ready]}
        if status != es.get("status"):
            self._cluster.replace_status({**es, "status": status})

    def _change(self, es: Manifest, change: Callable[[Manifest], bool]) -> Manifest:
        changed = copy.deepcopy(es)
        return self._cluster.replace(changed) if change(changed) else es


def _queue() -> WorkQueue:
    return WorkQueue(Time(), first_delay=1.0, longest_delay=420.0)


def _item(es: Manifest) -> Item:
    return Item(EXTERNAL_SECRET.kind, namespace=manifests.namespace(es), name=manifests.name(es))


def _label(obj: Manifest, name: str) -> object:
    return (manifests.metadata(obj).get("labels") or {}).get(name)


def _interval(es: Manifest) -> float:
    return duration(str(es["spec"].get("refreshInterval", "1h")))


def _condition(status: str, reason: str, message: str) -> Manifest:
    return {"type": "Ready", "status": status, "reason": reason, "message": message}


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
