from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError, VersionNotFoundError
from lance_nb.spark.source import scan
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ChangePlan
from tests.unit.spark.conftest import rows

WHOLE = -1  # the offset before every version


def plan_of(uri: str, **options: Any) -> ChangePlan:
    return ChangePlan.of(SourceOptions.of({"path": uri, **options}))


def read(plan: ChangePlan, start: int, end: int) -> list[dict[str, Any]]:
    batches = [one for part in plan.parts(start, end) for one in plan.batches(part)]
    return pa.Table.from_batches(batches, plan.schema).to_pylist()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Six versions: rows, more rows, a compaction, a deletion, a new column, more rows."""
    uri = str(tmp_path / "rows.lance")
    dataset: LanceDataset = lance_nb.write_dataset(rows(0, 10), uri, enable_stable_row_ids=True)
    dataset.insert(rows(10, 20))
    dataset.optimize.compact_files()
    dataset.delete("id = 3")
    dataset.add_columns({"double": "id * 2"})
    dataset.insert(rows(20, 25).append_column("double", pa.array(range(40, 50, 2))))
    assert dataset.version == 6
    return uri


def test_a_stream_begins_with_all_rows(uri: str) -> None:
    found = read(plan_of(uri), WHOLE, 6)
    assert sorted(one["id"] for one in found) == [one for one in range(25) if one != 3]


def test_appended_rows_come_once_whatever_became_of_them(uri: str) -> None:
    plan = plan_of(uri, skipchangecommits="true", columns="id,double")
    found = read(plan, 0, 6)
    assert [one["id"] for one in found] == list(range(25))
    assert [one["double"] for one in found[:20]] == [None] * 20
    assert found[24]["double"] == 48
    assert read(plan, 6, 6) == []
    with pytest.raises(NotSupportedError, match="skipChangeCommits"):
        plan_of(uri).parts(1, 6)


def test_the_feed_tells_every_change(uri: str) -> None:
    plan = plan_of(uri, readchangefeed="true").select(["_change_type", "_commit_version", "id"])
    found = [tuple(one.values()) for one in read(plan, 0, 6)]
    assert found[:10] == [("insert", 1, one) for one in range(10)]
    assert sorted(found[10:]) == sorted(
        [("insert", 2, one) for one in range(10, 20)]
        + [("delete", 4, 3)]
        + [("insert", 6, one) for one in range(20, 25)]
    )
    assert len(read(plan, WHOLE, 6)) == 24


def test_what_is_gone_or_wrong_is_said(uri: str, tmp_path: Path) -> None:
    plan = plan_of(uri)
    for path in (Path(uri) / "_versions").iterdir():
        if path.name == f"{2**64 - 1 - 2}.manifest":
            path.unlink()
    with pytest.raises(VersionNotFoundError, match="cleaned up before"):
        plan.parts(1, 6)
    with pytest.raises(InvalidInputError, match="no column 'nope'"):
        plan_of(uri, columns="nope")
    with pytest.raises(InvalidInputError, match="filter the DataFrame in Spark"):
        plan_of(uri, filter="id = 1")
    with pytest.raises(InvalidInputError, match="maxversionspertrigger"):
        SourceOptions.of({"maxversionspertrigger": "0"}).number("maxversionspertrigger")
    assert SourceOptions.of({"startingversion": "latest"}).starting_version == -1


@pytest.mark.parametrize("key", ["", "id"])
def test_shares_of_a_version_are_all_of_its_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    uri = str(tmp_path / "many.lance")
    made = lance_nb.write_dataset(
        rows(0, 90), uri, enable_stable_row_ids=True, max_rows_per_file=10
    )
    made.update({"name": "'new'"}, "id % 3 = 0")
    made.delete("id % 5 = 0")
    made.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.concat_tables([rows(2, 4), rows(200, 220)])
    )
    options = {"readchangefeed": "true", **({"key": key} if key else {})}
    whole = read(plan_of(uri, **options), 0, made.version)
    monkeypatch.setattr(scan, "CHANGED_ROWS", 7)
    plan = plan_of(uri, **options)
    parts = [one for one in plan.parts(0, made.version) if one.fragment_ids is None]
    assert {one.version for one in parts} == {2, 3, 4}
    assert len(parts) > 9
    found = read(plan, 0, made.version)
    order = repr
    assert sorted(found, key=order) == sorted(whole, key=order)
    for change in ("update_preimage", "update_postimage", "delete", "insert"):
        assert any(one["_change_type"] == change for one in found)


def test_appended_rows_of_the_feed_are_split_by_fragments(uri: str) -> None:
    plan = plan_of(uri, readchangefeed="true")
    assert [one.fragment_ids is None for one in plan.parts(0, 6)] == [False, False, True, False]
    inserted = [one for one in read(plan, 1, 6) if one["_commit_version"] == 2]
    feed = lance_nb.dataset(uri).changes(1, 2).read_all().to_pylist()
    assert [{**one, "double": None} for one in feed] == inserted
