"""What each service of Druid is told: the least that ingests, on loopback, in one directory.

The waits that suit a cluster of many machines are cut short.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.druid.releases import COORDINATOR, Release

ADMIN, INTERNAL = "admin", "druid_system"
"""The users that every Druid with basic authentication has."""

FLAGS = (
    "-Dzookeeper.sasl.client.canonicalize.hostname=false",
    "-Djava.util.logging.manager=org.apache.logging.log4j.jul.LogManager",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
)
"""What Druid needs of Java 17."""

_LOGGING = """\
<Configuration status="WARN">
  <Appenders>
    <Console name="Console"><PatternLayout pattern="%d{ISO8601} %p [%t] %c{1} - %m%n"/></Console>
  </Appenders>
  <Loggers><Root level="info"><AppenderRef ref="Console"/></Root></Loggers>
</Configuration>
"""

_OWN = {
    COORDINATOR: {
        "druid.coordinator.asOverlord.enabled": "true",
        "druid.coordinator.asOverlord.overlordService": "druid/overlord",
        "druid.coordinator.startDelay": "PT5S",
        "druid.coordinator.period": "PT2S",
        "druid.manager.segments.pollDuration": "PT1S",
        "druid.indexer.queue.startDelay": "PT1S",
        "druid.indexer.storage.type": "metadata",
        "druid.indexer.runner.type": "httpRemote",
    },
    "indexer": {
        "druid.worker.capacity": "4",
        "druid.indexer.task.gracefulShutdownTimeout": "PT1S",
    },
    "broker": {
        "druid.sql.enable": "true",
        "druid.sql.planner.metadataRefreshPeriod": "PT1S",
    },
    "router": {
        "druid.router.managementProxy.enabled": "true",
        "druid.router.defaultBrokerServiceName": "druid/broker",
        "druid.router.coordinatorServiceName": "druid/coordinator",
    },
    "historical": {"druid.server.maxSize": "1000000000"},
}


@dataclass(frozen=True, slots=True)
class Site:
    """Where one Druid has its files and its ports: the services', zookeeper's and derby's."""

    directory: Path
    ports: Mapping[str, int]


def write(release: Release, site: Site, service: str, passwords: Mapping[str, str]) -> Path:
    """Write a service's configuration, and return the directory for its class path.

    Args:
        release: What is configured.
        site: Its place.
        service: Whose configuration it is.
        passwords: Of ADMIN and of INTERNAL.
    """
    own = _OWN[service] | {
        "druid.service": f"druid/{service}",
        "druid.plaintextPort": str(site.ports[service]),
    }
    settings = _everywhere(release, site) | _places(site.directory) | own
    if release.authenticated:
        settings |= _authentication(passwords)
    directory = site.directory / "conf" / service
    directory.mkdir(parents=True)
    (directory / "log4j2.xml").write_text(_LOGGING)
    properties = directory / "runtime.properties"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return directory


def _everywhere(release: Release, site: Site) -> dict[str, str]:
    return {
        "druid.host": "127.0.0.1",
        "druid.bindOnHost": "true",
        "druid.extensions.directory": str(release.extension_directory),
        "druid.extensions.loadList": json.dumps(release.extensions),
        "druid.zk.service.host": f"127.0.0.1:{site.ports['zookeeper']}",
        # How long a leader that was killed keeps the next one waiting.
        "druid.zk.service.sessionTimeoutMs": "12000",
        "druid.metadata.storage.type": "derby",
        "druid.metadata.storage.connector.host": "127.0.0.1",
        "druid.metadata.storage.connector.port": str(site.ports["derby"]),
        "druid.metadata.storage.connector.connectURI": (
            f"jdbc:derby://127.0.0.1:{site.ports['derby']}/{site.directory}/metadata;create=true"
        ),
        "druid.emitter": "noop",
        "druid.processing.buffer.sizeBytes": "10000000",
        "druid.processing.numMergeBuffers": "2",
        "druid.processing.numThreads": "1",
        "druid.server.http.numThreads": "20",
        "druid.server.http.gracefulShutdownTimeout": "PT1S",
        # The Indexer would wait 53 s for lookups that do not exist.
        "druid.lookup.enableLookupSyncOnStartup": "false",
    }


def _places(directory: Path) -> dict[str, str]:
    cache = [{"path": f"{directory}/cache", "maxSize": 1_000_000_000}]
    return {
        "druid.storage.type": "local",
        "druid.storage.storageDirectory": f"{directory}/segments",
        "druid.indexer.logs.type": "file",
        "druid.indexer.logs.directory": f"{directory}/task-logs",
        "druid.indexer.task.baseDir": f"{directory}/tasks",
        "druid.indexer.task.baseTaskDir": f"{directory}/tasks",
        "druid.segmentCache.locations": json.dumps(cache),
    }


def _authentication(passwords: Mapping[str, str]) -> dict[str, str]:
    return {
        "druid.auth.authenticatorChain": '["passwords"]',
        "druid.auth.authenticator.passwords.type": "basic",
        "druid.auth.authenticator.passwords.initialAdminPassword": passwords[ADMIN],
        "druid.auth.authenticator.passwords.initialInternalClientPassword": passwords[INTERNAL],
        "druid.auth.authenticator.passwords.credentialsValidator.type": "metadata",
        "druid.auth.authenticator.passwords.skipOnFailure": "false",
        "druid.auth.authenticator.passwords.authorizerName": "permissions",
        "druid.auth.authorizers": '["permissions"]',
        "druid.auth.authorizer.permissions.type": "basic",
        "druid.auth.basic.common.pollingPeriod": "1000",
        "druid.auth.basic.common.maxRandomDelay": "100",
        "druid.escalator.type": "basic",
        "druid.escalator.internalClientUsername": INTERNAL,
        "druid.escalator.internalClientPassword": passwords[INTERNAL],
        "druid.escalator.authorizerName": "permissions",
    }
