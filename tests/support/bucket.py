"""A bucket in memory behind obstore: requests are counted, and fail where a test wants it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from lance_nb.storage import conditional_put, registry
from lance_nb.storage.object_store import ObjectStore


def _nothing(name: str, path: str) -> None:
    """Let a request through."""


class Bucket:
    """Objects of ``s3://bucket/...``."""

    def __init__(self) -> None:
        self.memory = MemoryStore()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.refused = ""
        self.before: Callable[[str, str], object] = _nothing

    def open(self, uri: str, *_: Any) -> ObjectStore:
        return ObjectStore.over(self.memory, uri.partition("://")[2], uri)

    def watch(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        act = getattr(obstore, name)

        def watched(driver: Any, path: str, *args: Any, **options: Any) -> Any:
            kind = path.removeprefix("bucket/t.lance/").partition("/")[0]
            self.requests[name, kind] += 1
            self.before(name, path)
            if name == "put" and self.refused and self.refused in path:
                raise obstore.exceptions.PermissionDeniedError("403")
            return act(driver, path, *args, **options)

        monkeypatch.setattr(obstore, name, watched)

    def copy(self, source: str, target: str) -> None:
        for entry in obstore.list(self.memory, target).collect():
            obstore.delete(self.memory, entry["path"])
        for entry in obstore.list(self.memory, source).collect():
            data = obstore.get(self.memory, entry["path"]).bytes()
            obstore.put(self.memory, entry["path"].replace(source, target, 1), data)


@contextmanager
def bucket_in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Open ``s3://bucket/...`` in memory."""
    made = Bucket()
    load = registry._load
    monkeypatch.setattr(
        registry, "_load", lambda target: made.open if "object_store" in target else load(target)
    )
    for name in ("get", "get_ranges", "head", "put", "list_with_delimiter"):
        made.watch(monkeypatch, name)
    conditional_put._faults.clear()
    yield made
    conditional_put._faults.clear()
