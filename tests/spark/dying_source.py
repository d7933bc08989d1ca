"""The data source, of which the process that commits the first batch of a stream dies after it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lance_nb.spark.source.data_source import LanceSource, LanceStreamWriter


class DiesAfterCommit(LanceSource):
    """``format("dies_after_commit")``; dies once for each path."""

    @classmethod
    def name(cls) -> str:
        return "dies_after_commit"

    def streamWriter(self, schema: StructType, overwrite: bool) -> LanceStreamWriter:
        return DyingWriter(self._write(schema, overwrite), f"{self.options['path']}.died")


class DyingWriter(LanceStreamWriter):
    def __init__(self, write: Any, mark: str) -> None:
        super().__init__(write)
        self._mark = Path(mark)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        super().commit(messages, batchId)
        if not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
