"""Whoever restores DruidIngestions as the manual says runs nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import commands
from tests.docs.shell import Shell
from tests.ingestion.world import BATCH, IngestionWorld


@pytest.mark.parametrize("ended", [True, False])
def test_a_batch_that_is_restored_does_not_run_again(tmp_path: Path, *, ended: bool) -> None:
    shell = Shell(tmp_path)
    with IngestionWorld() as world:
        world.make(BATCH)
        world.settle()
        (first,) = world.runs
        if ended:
            world.druid.tasks[first].state = "SUCCESS"
            world.settle()
        _pg_dump, look = commands("Backup and restore")[:2]
        shell.types(look, listed=f"team-a load {world.status()['taskId']}\nteam-a new \n")
        restored = world.parents["load"]
        restored["metadata"]["uid"] = "restored-from-a-backup"
        del restored["status"]
        (annotate,) = commands("Restore DruidIngestions")
        shell.types(annotate)
        restored["metadata"]["annotations"] = shell.annotations()
        world.settle()
        assert (world.runs, world.status()["taskId"]) == ([first], first)
