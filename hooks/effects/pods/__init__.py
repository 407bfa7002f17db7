"""Pods: listing them, and running psql in one of their containers."""

from __future__ import annotations

from hooks.effects.pods.psql import Psql
from hooks.effects.pods.reader import PodReader
from hooks.effects.pods.websocket import WebSocketExec

__all__ = ["PodReader", "Psql", "WebSocketExec"]
