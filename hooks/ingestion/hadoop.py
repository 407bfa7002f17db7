"""Does this Druid run Hadoop tasks? One that does not will not do so at the next attempt either."""

from __future__ import annotations

import re

from hooks.ingestion.reasons import HADOOP_DISABLED, HADOOP_REMOVED

_HADOOP_REMOVED = re.compile(
    r"Hadoop ingestion task was removed|Could not resolve type id 'index_hadoop'", re.IGNORECASE
)
_HADOOP_DISABLED = re.compile(r"allowHadoopTaskExecution", re.IGNORECASE)


def refusal(error: str) -> tuple[str, str] | None:
    """Return reason and advice when Druid does not run Hadoop tasks (any more)."""
    if _HADOOP_REMOVED.search(error):
        return HADOOP_REMOVED, (
            "this Druid has no Hadoop ingestion any more: write the specification as native-batch"
            " or sql, in a new DruidIngestion"
        )
    if _HADOOP_DISABLED.search(error):
        return HADOOP_DISABLED, (
            "this Druid runs Hadoop tasks only with"
            " druid.indexer.task.allowHadoopTaskExecution=true: set that, or write the"
            " specification as native-batch or sql"
        )
    return None
