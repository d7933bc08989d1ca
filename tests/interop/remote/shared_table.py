"""A table in an object store that pylance and lance_nb write in turn or together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import RetryableCommitConflictError, TooMuchWriteContentionError
from lance_nb.storage.registry import open_store
from tests.interop.remote.conftest import S3Place

PATH = "some dir/t.lance"


@dataclass(frozen=True)
class Shared:
    """One table, written by both."""

    s3: S3Place
    uri: str
    lance: Any

    @property
    def options(self) -> dict[str, str]:
        return self.s3.pylance_options

    def ours(self, *values: int, mode: str = "append", options: Any = None) -> None:
        """Write rows with lance_nb, until they land."""
        rows = pa.table({"x": list(values)})
        options = {**(options or self.options), "driver": self.s3.driver}
        while True:
            try:
                lance_nb.write_dataset(rows, self.uri, mode=mode, storage_options=options)
            except (RetryableCommitConflictError, TooMuchWriteContentionError):
                continue
            return

    def theirs(self, *values: int, mode: str = "append") -> None:
        """Write rows with pylance."""
        rows = pa.table({"x": list(values)})
        self.lance.write_dataset(rows, self.uri, mode=mode, storage_options=self.options)

    def together(self, writers: int, appends: int) -> list[int]:
        """Append with several writers at the same time, every second of them ours."""
        problems: list[BaseException] = []

        def write(number: int, act: Callable[[int], None]) -> None:
            try:
                for step in range(appends):
                    act(number * appends + step)
            except BaseException as error:
                problems.append(error)
                raise

        threads = [
            threading.Thread(target=write, args=(number, self.ours if number % 2 else self.theirs))
            for number in range(writers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
        return list(range(writers * appends))

    def manifest_names(self) -> list[str]:
        """List the folder of manifests as it is."""
        store = open_store(f"s3://{self.s3.bucket}/{PATH}", self.s3.options)
        return store.list_names("_versions")

    def check(self, expected: list[int]) -> None:
        """Check that both read exactly these rows."""
        judge = self.lance.dataset(self.uri, storage_options=self.options)
        found = lance_nb.dataset(self.uri, storage_options=self.options)
        judge.validate()
        assert sorted(judge.to_table()["x"].to_pylist()) == sorted(expected)
        assert sorted(found.to_table()["x"].to_pylist()) == sorted(expected)
        assert judge.version == found.version
        names = self.manifest_names()
        assert sum(name.endswith(".manifest") for name in names) == found.version
        assert not [name for name in names if ".manifest-" in name or ".probe" in name]
