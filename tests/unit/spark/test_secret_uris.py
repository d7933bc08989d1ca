"""Jobs on a store whose URI holds a user and a password: they open it, and show neither."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json
from lance_nb.spark.plan import Location, PinnedVersion, Plan
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.tasks.source_files import SourceFile
from lance_nb.storage import conditional_put

PASSWORD = "PLANTED"
HOST = f"safe://me:{PASSWORD}@box"
URI = f"{HOST}/t.lance"
ROWS = pa.table({"id": range(10), "x": range(10)})


class Safe(MemoryFileSystem):
    """A store with a login; as in drivers of FTP and SFTP, its paths lack host and user."""

    protocol = ("safe",)
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    _lock = threading.RLock()

    def __init__(self, **options: Any) -> None:
        super().__init__(skip_instance_cache=True)
        if (options.get("username"), options.get("password")) != ("me", PASSWORD):
            raise PermissionError("530 login incorrect")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        _, separator, below = path.partition("://")
        return "/" + (below.partition("/")[2] if separator else path).strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        parts = urlsplit(path)
        return {"username": parts.username, "password": parts.password} if parts.password else {}

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        with self._lock:
            super().pipe_file(path, value, mode=mode)


@pytest.fixture(autouse=True)
def dataset(monkeypatch: pytest.MonkeyPatch) -> Iterator[lance_nb.LanceDataset]:
    """Write a dataset of two fragments there, with a file beside it."""
    monkeypatch.setitem(conditional_put.CONDITIONAL_PUTS, "safe", conditional_put.S3Put())
    fsspec.register_implementation("safe", Safe, clobber=True)
    Safe.store.clear()
    with fsspec.open(f"{HOST}/in/k=1/rows.parquet", "wb") as file:
        pq.write_table(ROWS, file)
    with fsspec.open(f"{HOST}/damaged/rows.parquet", "wb") as file:
        file.write(b"PAR1")
    written = lance_nb.write_dataset(ROWS, URI)
    written.insert(ROWS)
    yield written
    for name, content in Safe.store.items():
        assert PASSWORD.encode() not in name.encode() + content.getvalue(), name
    _registry.pop("safe", None)
    Safe.store.clear()


Act = Callable[[str | lance_nb.LanceDataset], Any]
ACTS: dict[str, Act] = {
    "append files": lambda target: spark.append(
        target, f"{HOST}/in/k=1", hive=False, engine="local"
    ),
    "append a dataset": lambda target: spark.append(
        target, lance_nb.dataset(URI, 1), engine="local"
    ),
    "create": lambda _: spark.write(f"{HOST}/in", f"{HOST}/new.lance", engine="local"),
    "overwrite": lambda target: spark.write(ROWS, target, "overwrite", engine="local"),
    "replace": lambda target: spark.write(
        ROWS[3:4], target, "overwrite", where="id = 3", engine="local"
    ),
    "ignore": lambda target: spark.write(ROWS, target, "ignore", engine="local"),
    "delete": lambda target: spark.delete(target, "id = 3", engine="local", journal=True),
    "update": lambda target: spark.update(target, {"x": "id + 1"}, engine="local"),
    "backfill": lambda target: spark.backfill(target, {"y": "id + 1"}, engine="local"),
    "compact": lambda target: spark.compact(target, engine="local"),
    "index": lambda target: spark.create_scalar_index(target, "id", engine="local"),
    "count": lambda target: spark.count(target, "id > 3", engine="local"),
    "diff": lambda target: spark.diff(target, 1, 2, engine="local"),
    "statistics": lambda target: spark.statistics(target, engine="local"),
    "clone": lambda target: spark.clone(target, f"{HOST}/copy.lance", engine="local"),
    "orphans": spark.orphans,
    "merge": lambda target: (
        spark.merge(target, ROWS[:3], on="id").when_matched_update_all().execute(engine="local")
    ),
}


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("name", ACTS)
def test_jobs_open_the_store_and_show_no_password(
    dataset: lance_nb.LanceDataset, name: str, is_open: bool
) -> None:
    result = ACTS[name](dataset if is_open else URI)
    assert PASSWORD not in f"{result!r} {result}"
    if name in {"create", "clone"}:
        path = "new" if name == "create" else "copy"
        rows = lance_nb.dataset(f"{HOST}/{path}.lance").to_table()
        assert rows.num_rows == (10 if name == "create" else 20)
        assert rows.schema.names == (["id", "x", "k"] if name == "create" else ["id", "x"])


PLANS: dict[str, Callable[[lance_nb.LanceDataset], Plan]] = {
    "delete": lambda target: spark.plan_delete(target, "id = 3"),
    "append": lambda target: spark.plan_append(target, f"{HOST}/in/k=1/rows.parquet"),
    "clone": lambda target: spark.plan_clone(target, f"{HOST}/copy.lance"),
    "compact": spark.plan_compaction,
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_travels_with_its_password_and_is_kept_without(
    dataset: lance_nb.LanceDataset, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PLANS[name](dataset)
    stored = to_json((plan.pinned, plan.tasks, plan.finish))
    for shown in (repr(plan), str(spark.explain(plan, engine="local")), stored.decode()):
        assert PASSWORD not in shown
    assert "safe://***@box" in repr(plan)
    assert b"safe://***@box" in stored
    sent = pickle.loads(pickle.dumps(plan.tasks))  # noqa: S301
    assert sent == plan.tasks
    missing = ResumeOptions({"username": "me", "password": PASSWORD})
    from_json(stored, missing)
    assert list(missing.missing) == ["the user and password of the URI"]
    monkeypatch.setenv("LANCE_NB_URI_USERINFO", f"me:{PASSWORD}")
    resumed = ResumeOptions({"password": PASSWORD})
    pinned, tasks, _ = from_json(stored, resumed)
    assert not resumed.missing
    assert pinned.location.opening_uri == URI
    assert PASSWORD not in repr((pinned, tasks))
    results = [task.run() for task in tasks]
    assert plan.commit(plan.finalized(results)).count_rows() > 0


def test_damaged_and_missing_files_are_named_without_the_password(
    dataset: lance_nb.LanceDataset,
) -> None:
    with pytest.raises(InvalidInputError, match=r"damaged/rows\.parquet is not") as damaged:
        spark.append(dataset, f"{HOST}/damaged", engine="local")
    with pytest.raises(InvalidInputError, match=r"no file matches 'safe://\*\*\*@box") as missing:
        spark.append(dataset, f"{HOST}/none*", engine="local")
    with pytest.raises(LanceError) as refused:
        spark.count(f"safe://me:{PASSWORD}1@box/t.lance", engine="local")
    for error in (damaged, missing, refused):
        assert PASSWORD not in f"{error.value!r} {error.value}"


def test_values_with_a_secret_uri_show_a_masked_one() -> None:
    signed = f"https://host/a.parquet?sig={PASSWORD}"
    file = SourceFile(Location(signed))
    for value in (PinnedVersion(Location(URI), 1), file, SourceOptions((("path", URI),))):
        assert PASSWORD not in repr(value)
    assert (file.path, file.location.opening_uri) == ("https://host/a.parquet?sig=***", signed)
    plain = Location("s3://bucket/t.lance")
    assert (plain.opening_uri, plain.secret_uri) == ("s3://bucket/t.lance", "")
