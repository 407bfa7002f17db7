"""A real Kafka broker without ZooKeeper (KRaft) on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from hooks.sandbox.processes import Process, free_port
from tests.e2e.druid import artifacts, jvm

_CLUSTER = "6PzkyXwTQ1yFhYxG0b4cYA"
"""Any 16 bytes in base64: what Kafka calls the id of a cluster."""


class KafkaBroker:
    """A running broker; `with` stops it."""

    def __init__(self, directory: Path) -> None:
        """Start it and wait until it answers its own tools."""
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._classpath = [f"{artifacts.jars('kafka')}/*"]
        self._log = directory / "kafka.log"
        config = directory / "server.properties"
        config.write_text(_text(self._settings(directory / "data", free_port())))
        format_ = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(config)]
        jvm.run(format_, classpath=self._classpath)
        self._process = self._started(config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it."""
        jvm.stop_in_order(self._process)

    def produce(self, topic: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Append rows as JSON; the topic is made when it is not there."""
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        target = ["--bootstrap-server", self.address, "--topic", topic]
        tool = ["kafka.tools.ConsoleProducer", *target, "--producer-property", "acks=all"]
        jvm.run(tool, classpath=self._classpath, text=lines)

    def _started(self, config: Path) -> Process:
        process = jvm.start(
            ["kafka.Kafka", str(config)],
            classpath=self._classpath,
            heap="256m",
            log=self._log,
        )
        try:
            process.wait_until(lambda: "Kafka Server started" in self._log.read_text(), timeout=60)
        except BaseException:
            process.kill()
            raise
        return process

    def _settings(self, data: Path, controller: int) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }


def _text(settings: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
