"""The names that Kubernetes and PostgreSQL take."""

from __future__ import annotations

import re

IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}\Z")
"""A PostgreSQL identifier as this API takes it: needs no folding, and is not cut off."""

DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
"""The name of a Kubernetes object, up to its length."""

MAX_NAME = 253
"""Characters of a DNS subdomain."""
