"""Automatic compaction and retention rules at the double of Druid, by datasource."""

from __future__ import annotations

import json
from urllib.parse import unquote

from hooks.sandbox.druid_conduct import User
from hooks.sandbox.druid_replies import Document, Reply, druid_exception, error, given

_COMPACTION = "/druid/coordinator/v1/config/compaction"
_RULES = "/druid/coordinator/v1/rules/"
_DONE = given({"success": True})
# Before 32 this is empty.
_NO_COMPACTION = druid_exception(
    404, "Datasource compaction config does not exist", code="notFound", category="NOT_FOUND"
)
_FORBIDDEN = given({"Access-Check-Result": "Unauthorized"}, status=403)
_DEFAULTS: Document = {
    "type": "inline",
    "taskPriority": 25,
    "inputSegmentSizeBytes": 100000000000000,
    "maxRowsPerSegment": None,
    "skipOffsetFromLatest": "P1D",
    "tuningConfig": None,
    "granularitySpec": None,
    "taskContext": None,
}
_RULE_TYPES = ("load", "drop", "broadcast")


class Coordinator:
    """What is configured, with the defaults that Druid fills in."""

    def __init__(self) -> None:
        self.compaction: dict[str, Document] = {}
        self.rules: dict[str, list[Document]] = {}

    def answer(self, method: str, path: str, user: User | None, body: bytes) -> Reply:
        """Answer a request, empty 404 for a path that is none."""
        if path.startswith(_COMPACTION):
            if user and not user.config:
                return _FORBIDDEN
            return self._compaction(method, unquote(path[len(_COMPACTION) + 1 :]), body)
        if path.startswith(_RULES):
            datasource = unquote(path[len(_RULES) :])
            if user and not user.may("read" if method == "GET" else "write", datasource):
                return _FORBIDDEN
            return self._rules(method, datasource, body)
        return Reply(404)

    def _compaction(self, method: str, datasource: str, body: bytes) -> Reply:
        match (method, bool(datasource)):
            case ("GET", False):
                return given({"compactionConfigs": list(self.compaction.values())})
            case ("POST", False):
                return self._set_compaction(json.loads(body))
            case ("GET" | "DELETE", True) if datasource not in self.compaction:
                return _NO_COMPACTION
            case ("GET", True):
                return given(self.compaction[datasource])
            case ("DELETE", True):
                del self.compaction[datasource]
                return _DONE
            case _:
                return Reply(405)

    def _set_compaction(self, config: Document) -> Reply:
        datasource = config.get("dataSource")
        if not datasource:
            name = "org.apache.druid.server.coordinator.InlineSchemaDataSourceCompactionConfig"
            return error(400, f"Cannot construct instance of `{name}`, problem: dataSource")
        self.compaction[datasource] = {**_DEFAULTS, **config}
        return _DONE

    def _rules(self, method: str, datasource: str, body: bytes) -> Reply:
        if method == "GET":
            return given(self.rules.get(datasource, []))
        rules = json.loads(body)
        for rule in rules:
            if not str(rule.get("type")).startswith(_RULE_TYPES):
                text = f"Could not resolve type id '{rule.get('type')}' as a subtype of"
                return error(400, f"{text} `org.apache.druid.server.coordinator.rules.Rule`")
        self.rules[datasource] = [_filled(rule) for rule in rules]
        return Reply(200)


def _filled(rule: Document) -> Document:
    if not rule["type"].startswith("load"):
        return rule
    return {"tieredReplicants": {"_default_tier": 2}, "useDefaultTierForNull": True, **rule}
