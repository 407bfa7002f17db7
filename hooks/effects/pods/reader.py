"""Reads of Pods."""

from __future__ import annotations

from collections.abc import Mapping

from kubernetes.client.api_client import ApiClient

from hooks.core.deadline import Deadline
from hooks.core.errors import Misconfigured
from hooks.core.manifests import Manifest, metadata
from hooks.effects.kubernetes.transport import SYSTEM, Question, ask
from hooks.effects.ports.kubernetes import Resource

_PODS = Resource("", "v1", "pods")
_PAGE = "500"


class PodReader:
    """The Pods of one API server."""

    def __init__(self, client: ApiClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline

    def list(self, namespace: str, selector: str) -> list[Manifest]:
        """List the Pods of a namespace by a label selector, whole; every page or none."""
        question = Question("list", _PODS, namespace)
        query = {"labelSelector": selector, "limit": _PAGE}
        found: list[Manifest] = []
        page: Mapping[str, str] = query
        while True:
            timeout = self._deadline.timeout(SYSTEM)
            listed = ask(self._client, question, "application/json", page, timeout).accepted()
            if "items" not in listed:
                raise Misconfigured(SYSTEM, f"no list came back from {question}")
            found += listed["items"] or []
            token = metadata(listed).get("continue")
            if not token:
                return found
            page = {**query, "continue": token}
