"""The Druids of the sandbox: what a user's DruidIngestions need is made, and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.druids import LocalDruids


@pytest.fixture
def druids(tmp_path: Path) -> Iterator[LocalDruids]:
    with ExitStack() as stack:
        yield LocalDruids.start(Authority(tmp_path), "", stack)


def ingestion(name: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "druid.apache.org/v1alpha1",
        "kind": "DruidIngestion",
        "metadata": {"name": name, "namespace": "druid"},
        "spec": {"druidCluster": "tiny", **spec},
    }


def service(name: str, cluster: str, scheme: str, port: int) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": "druid",
            "labels": {"druid_cr": cluster, "component": "router"},
        },
        "spec": {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"name": scheme, "port": port}],
        },
    }


def test_ingestions_of_one_cluster_share_the_service_of_its_router(druids: LocalDruids) -> None:
    assert druids.double is not None
    assert druids.needed([ingestion("one"), ingestion("two")]) == [
        service("tiny-router", "tiny", "http", druids.double.port)
    ]


def test_what_spec_names_is_made(druids: LocalDruids) -> None:
    secured = ingestion(
        "one",
        auth={"secretRef": {"name": "login"}, "usernameKey": "user"},
        tls={
            "caSecretRef": {"name": "ca", "key": "root.pem"},
            "clientCertSecretRef": {"name": "me"},
        },
    )
    router, *made = druids.needed([secured])
    assert router == service("tiny-router", "tiny", "https", druids.secured.port)
    held = {
        each["metadata"]["name"]: {
            key: base64.b64decode(text).decode() for key, text in each["data"].items()
        }
        for each in made
    }
    password = druids.secured.conduct.users["druid-operator"].password
    assert held == {
        "login": {"user": "druid-operator", "OperatorPassword": password},
        "ca": {"root.pem": druids.ca_file.read_text()},
        "me": {
            "tls.crt": druids.client.cert.read_text(),
            "tls.key": druids.client.key.read_text(),
        },
    }


def test_what_the_files_hold_is_left_as_it_is(druids: LocalDruids) -> None:
    own = service("tiny-router", "tiny", "http", 8888)
    assert druids.needed([own, ingestion("one")]) == []


def test_an_ingestion_without_a_usable_spec_needs_nothing_that_can_be_known(
    druids: LocalDruids,
) -> None:
    broken = ingestion("one", auth="none", tls=[])
    assert [each["kind"] for each in druids.needed([broken | {"spec": None}, broken])] == [
        "Service"
    ]


def test_a_real_druid_takes_the_place_of_the_double(tmp_path: Path) -> None:
    with ExitStack() as stack:
        druids = LocalDruids.start(Authority(tmp_path), "https://druid.example.org", stack)
        (made,) = druids.needed([ingestion("one")])
    assert druids.double is None
    assert made["spec"] == {
        "type": "ExternalName",
        "externalName": "druid.example.org",
        "ports": [{"name": "https", "port": 443}],
    }
