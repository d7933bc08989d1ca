"""Progress of writes, and small values: the same code with pylance and with ours."""

from __future__ import annotations

import importlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
lance = require_pylance()
import lance.progress as their_progress  # noqa: E402
import lance.util as their_util  # noqa: E402

their_dataset = importlib.import_module("lance.dataset")
ENGINES = [lance, lance_nb]
ROWS = pa.table({"a": range(10)})


def progress_of(engine: Any) -> Any:
    return lance_nb if engine is lance_nb else their_progress


def following(engine: Any) -> Any:
    class Log(progress_of(engine).FragmentWriteProgress):
        def __init__(self) -> None:
            self.log: list[tuple[str, int, int, list[int]]] = []

        def note(self, event: str, fragment: Any) -> None:
            fields = [file.fields for file in fragment.files]
            self.log.append((event, fragment.id, fragment.physical_rows or 0, fields))

        def begin(self, fragment: Any, **kwargs: Any) -> None:
            self.note("begin", fragment)

        def complete(self, fragment: Any, **kwargs: Any) -> None:
            self.note("complete", fragment)

    return Log()


@pytest.mark.parametrize("num_rows", [4, 3, 5, 100])
def test_each_fragment_begins_and_completes(num_rows: int, tmp_path: Path) -> None:
    logs = []
    for engine in ENGINES:
        log = following(engine)
        uri = tmp_path / f"{engine.__name__}{num_rows}"
        engine.write_dataset(ROWS, uri, max_rows_per_file=num_rows, progress=log)
        logs.append(log.log)
    theirs, ours = logs
    # pylance does not tell of the end of the last fragment unless it is full.
    assert ours[: len(theirs)] == theirs
    assert [one[0] for one in ours] == ["begin", "complete"] * (len(ours) // 2)
    assert sum(rows for event, _, rows, _ in ours if event == "complete") == len(ROWS)


def test_fragments_are_followed_without_a_commit(tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    lance_nb.write_dataset(ROWS, uri)
    log = following(lance_nb)
    made = lance_nb.write_fragments(ROWS, uri, max_rows_per_file=6, progress=log)
    assert [one[2] for one in log.log] == [0, 6, 0, 4]
    assert len(made) == 2
    lance_nb.dataset(uri).insert(ROWS, progress=lance_nb.NoopFragmentWriteProgress())


@pytest.mark.parametrize("event", ["begin", "complete"])
def test_what_is_raised_ends_the_write_and_leaves_nothing(event: str, tmp_path: Path) -> None:
    log = following(lance_nb)

    def fail(fragment: Any, **kwargs: Any) -> None:
        raise RuntimeError("enough")

    setattr(log, event, fail)
    with pytest.raises(RuntimeError, match="enough"):
        lance_nb.write_dataset(ROWS, tmp_path / "d", progress=log)
    assert not [one for one in tmp_path.rglob("*.lance") if one.is_file()]


def test_what_cannot_follow_is_refused(tmp_path: Path) -> None:
    for engine in ENGINES:
        with pytest.raises(TypeError):
            progress_of(engine).FragmentWriteProgress()
    with pytest.raises(TypeError, match="FragmentWriteProgress, not int"):
        lance_nb.write_dataset(ROWS, tmp_path / "d", progress=3)


def test_files_of_progress_are_the_same(tmp_path: Path) -> None:
    texts = []
    for engine in ENGINES:
        folder = tmp_path / engine.__name__
        values = lance_nb if engine is lance_nb else importlib.import_module("lance.fragment")
        one = values.FragmentMetadata(7, [values.DataFile("x.lance", [0], [0], 2, 2)], 5)
        follower = progress_of(engine).FileSystemFragmentWriteProgress(str(folder), {"w": "1"})
        follower.begin(one)
        texts.append({file.name: json.loads(file.read_text()) for file in folder.iterdir()})
        follower.complete(one)
        assert [file.name for file in folder.iterdir()] == ["fragment_7.json"]
    assert texts[0] == texts[1]
    with pytest.raises(OSError, match="end of a fragment"):
        follower.complete(one)


def test_row_addresses_are_serialized_alike(tmp_path: Path) -> None:
    ds = lance.write_dataset(ROWS, tmp_path / "d", max_rows_per_file=5)
    for addrs in ([1, 4, 1 << 32], [], [4, 1, 1], [2**64 - 1, 3 << 32, 0]):
        ours = lance_nb.serialize_row_addrs(addrs)
        assert ours == their_dataset.serialize_row_addrs(addrs)
    few = lance_nb.serialize_row_addrs(range(2, 4))
    assert ds.scanner(row_addr_allowlist=few).to_table()["a"].to_pylist() == [2, 3]
    many = lance_nb.serialize_row_addrs([*range(5), *range(1 << 32, (1 << 32) + 3)])
    assert ds.scanner(row_addr_allowlist=many).to_table()["a"].to_pylist() == list(range(8))
    for wrong in ([-1], [2**64], ["a"]):
        with pytest.raises((TypeError, OverflowError)):
            their_dataset.serialize_row_addrs(wrong)
        with pytest.raises(TypeError):
            lance_nb.serialize_row_addrs(wrong)


@pytest.mark.parametrize(
    "moment", ["2024-01-02 03:04:05", "x", datetime(2024, 1, 2, tzinfo=UTC), 3, None], ids=str
)
def test_moments_are_understood_alike(moment: Any) -> None:
    outcomes = []
    for sanitize in (their_util.sanitize_ts, lance_nb.sanitize_ts):
        try:
            outcomes.append(sanitize(moment))
        except (ValueError, TypeError) as error:
            outcomes.append(isinstance(error, TypeError))
    assert outcomes[0] == outcomes[1]


def test_constants_and_small_values_are_the_same() -> None:
    for span in (timedelta(seconds=1.5), timedelta(microseconds=-3), timedelta(days=99)):
        assert lance_nb.td_to_micros(span) == their_util.td_to_micros(span)
    assert lance_nb.LANCE_COMMIT_MESSAGE_KEY == their_dataset.LANCE_COMMIT_MESSAGE_KEY
    fragment = importlib.import_module("lance.fragment")
    assert fragment.DEFAULT_MAX_BYTES_PER_FILE == lance_nb.DEFAULT_MAX_BYTES_PER_FILE
    ours, theirs = lance_nb.ColumnOrdering("a", False), their_dataset.ColumnOrdering("a", False)
    assert repr(ours) == repr(theirs)
    given = lance_nb.AutoCleanupConfig(interval=3, older_than_seconds=4)
    assert given == their_dataset.AutoCleanupConfig(interval=3, older_than_seconds=4)
    assert lance_nb.AlterColumn(path="a") == their_dataset.AlterColumn(path="a")


def test_automatic_cleanup_is_configured_alike(tmp_path: Path) -> None:
    configs = []
    for engine in ENGINES:
        options = (lance_nb if engine is lance_nb else their_dataset).AutoCleanupConfig(
            interval=3, older_than_seconds=4
        )
        uri = tmp_path / engine.__name__
        configs.append(engine.write_dataset(ROWS, uri, auto_cleanup_options=options).config())
    assert configs[0] == configs[1]
