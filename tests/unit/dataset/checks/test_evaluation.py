from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks import evaluation
from lance_nb.dataset.checks.result import CheckOutcome
from lance_nb.errors import (
    CancelledError,
    ColumnNotFoundError,
    ExpectationFailedError,
    InvalidInputError,
    NotFoundError,
    NotSupportedError,
    PredicateError,
)
from lance_nb.session import base_paths

Make = Callable[..., LanceDataset]


@pytest.fixture
def dataset(make: Make) -> LanceDataset:
    """Two fragments: scores from 0 to 1.9, one NULL; names with a NULL and doubles."""
    scores = [n / 10 for n in range(9)] + [None]
    make(pa.table({"id": range(10), "score": scores, "name": [*"aabbccdd", None, None]}))
    return make(
        pa.table(
            {"id": range(10, 20), "score": [n / 10 for n in range(10, 20)], "name": ["e"] * 10}
        ),
        mode="append",
    )


def outcome(dataset: LanceDataset, name: str, **options: object) -> CheckOutcome:
    return dataset.check(names=[name], **options).outcomes[0]


def test_a_condition_that_is_null_passes_as_in_sql(dataset: LanceDataset) -> None:
    name = dataset.expectations.add("score <= 1 -- a comment")
    found = outcome(dataset, name)
    assert (found.status, found.num_rows, found.num_failed, found.num_null) == ("fail", 20, 9, 1)
    assert found.fragments == (1,)
    assert dataset.count_rows(found.filter) == 9
    name = dataset.expectations.add("score < 5")
    found = outcome(dataset, name)
    assert (found.status, found.num_null) == ("pass", 1)
    assert found.detail == "NULL for 1 row, which pass"


def test_not_null_and_unique(dataset: LanceDataset) -> None:
    found = outcome(dataset, dataset.expectations.add_not_null("name"))
    assert (found.status, found.num_failed, found.fragments) == ("fail", 2, (0,))
    assert dataset.count_rows(found.filter) == 2
    assert outcome(dataset, dataset.expectations.add_unique("id")).status == "pass"
    found = outcome(dataset, dataset.expectations.add_unique("name"))
    # NULL is like no other key: the two rows without a name do not count.
    assert (found.num_failed, found.num_null, found.fragments) == (18, 2, (0, 1))
    assert outcome(dataset, dataset.expectations.add_unique(["id", "name"])).status == "pass"
    dataset.insert(pa.table({"id": [3], "score": [None], "name": ["b"]}, dataset.schema))
    found = outcome(dataset, "unique-id-name")
    assert (found.num_failed, found.fragments) == (2, (0, 2))


def test_both_zeros_are_one_key(make: Make) -> None:
    dataset = make(pa.table({"x": [0.0, -0.0, 1.0, None]}))
    assert outcome(dataset, dataset.expectations.add_unique("x")).num_failed == 2


def test_keys_that_share_a_hash_are_compared(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poor(columns: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(columns[0]), np.uint64), np.ones(len(columns[0]), np.bool_)

    monkeypatch.setattr(evaluation, "key_hashes", poor)
    assert outcome(dataset, dataset.expectations.add_unique("id")).status == "pass"


def test_deleted_rows_do_not_count(dataset: LanceDataset) -> None:
    dataset.expectations.add("score <= 1", name="s")
    dataset.expectations.add_unique("name", name="n")
    dataset.delete("score > 1 OR name IN ('a', 'b', 'c', 'd')")
    found = {one.name: one for one in dataset.check().outcomes}
    assert (found["s"].status, found["s"].num_rows) == ("pass", 3)
    assert found["n"].status == "pass"
    dataset.delete("id >= 0")
    assert dataset.check().ok


def test_rows_are_counted_from_the_manifest(dataset: LanceDataset) -> None:
    name = dataset.expectations.add_row_count(21, 30)
    found = dataset.check()
    assert (found.status, found.bytes_read) == ("fail", 0)
    assert found.outcomes[0].detail == "20 rows, at least 21 expected"
    dataset.insert(pa.table({"id": range(11), "score": [0.5] * 11, "name": ["x"] * 11}))
    assert outcome(dataset, name).detail == "31 rows, at most 30 expected"


def test_drift_from_the_version_before_and_from_a_tag(make: Make) -> None:
    dataset = make(pa.table({"x": np.linspace(0, 1, 500)}))
    dataset.tags.create("v1")
    name = dataset.expectations.add_drift("x", 0.2)
    tagged = dataset.expectations.add_drift("x", 0.2, against="v1")
    assert dataset.check().ok
    assert dataset.check(1).outcomes[0].detail == "there is no version before this one"
    dataset.insert(pa.table({"x": np.full(2000, 0.9)}))
    assert [outcome(dataset, one).status for one in (name, tagged)] == ["fail", "fail"]
    dataset.update_config({"a": "b"})
    assert [outcome(dataset, one).status for one in (name, tagged)] == ["pass", "fail"]
    dataset.tags.delete("v1")
    assert outcome(dataset, tagged).status == "unknown"


def test_references_and_what_they_need(dataset: LanceDataset, uri: str) -> None:
    other = f"{uri}-names"
    lance_nb.write_dataset(pa.table({"n": list("abcd")}), other)
    name = dataset.expectations.add_reference("name", other, "n")
    found = outcome(dataset, name)
    assert (found.status, found.num_failed, found.num_null) == ("fail", 10, 2)
    lance_nb.dataset(other).insert(pa.table({"n": ["e"]}))
    assert outcome(dataset, name).status == "pass"
    with pytest.raises(ColumnNotFoundError):
        dataset.expectations.add_reference("name", other, "m")


def test_a_reference_outside_of_the_dataset_is_read_only_where_allowed(
    dataset: LanceDataset, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = f"{uri}-names"
    lance_nb.write_dataset(pa.table({"n": list("abcde")}), other)
    name = dataset.expectations.add_reference("name", other, "n")
    monkeypatch.setattr(base_paths, "_created", {})
    opened = lance_nb.dataset(uri)
    found = outcome(opened, name)
    assert found.status == "unknown"
    assert "allow_bases" in found.detail
    assert outcome(opened, name, allow_bases=[other]).status == "pass"
    lance_nb.dataset(uri).update_config(
        {f"lance_nb.expectation.{name}": opened.config()[f"lance_nb.expectation.{name}"].replace(
            other, f"{uri}-missing")}
    )  # fmt: skip
    opened = lance_nb.dataset(uri)
    assert "cannot be read" in outcome(opened, name, allow_bases=[f"{uri}-missing"]).detail


def test_what_cannot_be_evaluated_is_unknown_and_not_ok(dataset: LanceDataset) -> None:
    dataset.add_columns({"late": "id + 1"})
    name = dataset.expectations.add("late > 0")
    assert dataset.check(2).status == "unknown"
    assert "'late'" in dataset.check(2).outcomes[0].detail
    assert dataset.check().ok
    dataset.update_config(
        {
            "lance_nb.expectation.bad": "{",
            "lance_nb.expectation.clock": '{"kind": "check", "sql": "late < now()"}',
            "lance_nb.expectation.sql": '{"kind": "check", "sql": "late >"}',
            "lance_nb.expectation.two": '{"kind": "check", "sql": "late > 0; DROP TABLE x"}',
            "lance_nb.expectation.deep": '{"kind": "check", "sql": "' + "(" * 5000 + '"}',
        }
    )
    found = dataset.check()
    assert {one.name: one.status for one in found.outcomes} == {
        name: "pass", "bad": "unknown", "clock": "unknown", "sql": "unknown", "two": "unknown",
        "deep": "unknown",
    }  # fmt: skip
    assert not found.ok
    assert dataset.expectations.problems().keys() == {"bad"}
    assert "clock" in dataset.expectations.list()


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("count(*) > 3", PredicateError),
        ("score < now()", PredicateError),
        ("score < current_date", PredicateError),
        ("_rowid > 3", PredicateError),
        ("nope > 3", ColumnNotFoundError),
        ("score + 1", PredicateError),
        ("score >", PredicateError),
        ("SELECT true", PredicateError),
        ("score > 0; score < 1", PredicateError),
        ("", InvalidInputError),
    ],
)
def test_conditions_that_are_refused(
    dataset: LanceDataset, condition: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        dataset.expectations.add(condition)
    assert dataset.version == 2


def test_names_and_columns_that_are_refused(make: Make) -> None:
    dataset = make(pa.table({"id": [1], "tags": [[1, 2]]}))
    dataset.expectations.add("id > 0", name="a")
    for call in (
        lambda: dataset.expectations.add("id > 1", name="a"),
        lambda: dataset.expectations.add("id > 1", name="a b"),
        dataset.expectations.add_row_count,
        lambda: dataset.expectations.add_drift("id", 0),
        lambda: dataset.check(names=["b"]),
    ):
        with pytest.raises(InvalidInputError):
            call()
    with pytest.raises(NotSupportedError):
        dataset.expectations.add_unique("tags")
    with pytest.raises(ColumnNotFoundError):
        dataset.expectations.add_not_null("nope")
    with pytest.raises(NotFoundError):
        dataset.expectations.remove("b")
    dataset.expectations.remove("a")
    assert dataset.expectations.names() == []


def test_two_people_who_add_one_each_do_not_conflict(dataset: LanceDataset, uri: str) -> None:
    other = lance_nb.dataset(uri)
    dataset.expectations.add("id >= 0", name="mine")
    other.expectations.add("id < 50", name="theirs")
    assert lance_nb.dataset(uri).expectations.names() == ["mine", "theirs"]


def test_bisect_finds_the_version_that_broke_it(dataset: LanceDataset) -> None:
    name = dataset.expectations.add_unique("id")
    for number in range(8):
        dataset.insert(pa.table({"id": [100 + number % 5], "score": [0.0], "name": ["x"]}))
    found = dataset.expectations.bisect(name)
    assert found.first_bad == 9
    statuses = [one.status for one in dataset.check_versions()]
    assert statuses == ["pass"] * 8 + ["fail"] * 3


def test_the_work_can_be_cancelled(dataset: LanceDataset) -> None:
    dataset.expectations.add("id >= 0")

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        dataset.check(progress=cancel)
    steps: list[tuple[int, int]] = []
    dataset.check_versions(progress=lambda done, total: steps.append((done, total)))
    assert steps == [(0, 3), (1, 3), (2, 3)]


# --- the gate -------------------------------------------------------------------------------------


def test_the_gate_refuses_what_breaks_an_expectation(dataset: LanceDataset) -> None:
    dataset.expectations.add("score < 2", name="bound")
    dataset.expectations.add_unique("id", name="key")
    more = pa.table({"id": [3], "score": [7.0], "name": ["x"]})
    assert dataset.stage().append(more).broken_expectations() == []
    dataset.expectations.set_gate(True)
    assert dataset.expectations.gate
    stage = dataset.stage().append(more)
    assert [one.name for one in stage.broken_expectations()] == ["bound", "key"]
    with pytest.raises(ExpectationFailedError, match="would break 2 expectations"):
        stage.commit()
    assert stage.state == "open"
    assert dataset.latest_version == dataset.version
    before = dataset.version
    assert stage.commit(check_expectations=False) == before + 1 == dataset.version


def test_a_broken_dataset_can_be_mended_step_by_step(dataset: LanceDataset) -> None:
    dataset.expectations.add("score <= 1", name="bound")
    dataset.expectations.set_gate(True)
    dataset.stage().delete("id = 15").commit()
    newest = dataset.checkout_latest()
    assert newest.check().outcomes[0].num_failed == 8
    with pytest.raises(ExpectationFailedError):
        newest.stage().update({"score": "5"}, where="id = 1").commit()


def test_the_gate_of_the_newest_version_counts(dataset: LanceDataset, uri: str) -> None:
    dataset.expectations.add("score < 2", name="bound")
    stage = dataset.stage().append(pa.table({"id": [30], "score": [9.0], "name": ["x"]}))
    lance_nb.dataset(uri).expectations.set_gate(True)
    with pytest.raises(ExpectationFailedError):
        stage.commit()
    lance_nb.dataset(uri).expectations.set_gate(False)
    stage.commit()


def test_compaction_passes_the_gate(dataset: LanceDataset) -> None:
    dataset.expectations.add("score <= 1", name="bound")
    dataset.expectations.set_gate(True)
    dataset.stage().compact().commit()
    assert len(dataset.checkout_latest().get_fragments()) == 1


def test_the_rows_that_fail(tmp_path: Path) -> None:
    others = lance_nb.write_dataset(pa.table({"name": ["a", "b"]}), tmp_path / "b.lance")
    uri = str(tmp_path / "a.lance")
    for start in (0, 4):
        table = pa.table({"id": [start, start + 1, 0], "name": ["a", None, f"x{start}"]})
        mode = "append" if start else "create"
        dataset = lance_nb.write_dataset(table, uri, mode=mode, enable_stable_row_ids=True)
    dataset.delete("id = 1")
    expectations = dataset.expectations
    expectations.add("id < 5", name="small")
    expectations.add_not_null("name", name="named")
    expectations.add_unique("id", name="key")
    expectations.add_reference("name", others.uri, "name", name="known")
    expectations.add_row_count(100, name="rows")

    def ids(name: str, **how: Any) -> list[int]:
        return expectations.failing_rows(name, columns=["id"], **how)["id"].to_pylist()

    assert ids("small") == [5]
    assert ids("named") == [5]
    assert ids("key") == [0, 0, 0]
    assert ids("key", limit=2) == [0, 0]
    assert ids("known") == [0, 0]
    assert expectations.failing_rows("known")["name"].to_pylist() == ["x0", "x4"]
    dataset.delete("id = 5")
    assert ids("small") == []
    assert expectations.failing_rows("small").column_names == ["id", "name"]
    with pytest.raises(InvalidInputError, match="about all rows together"):
        ids("rows")
    with pytest.raises(InvalidInputError, match="no expectation 'other'"):
        ids("other")
    with pytest.raises(InvalidInputError, match="limit must be at least 1"):
        ids("key", limit=0)


def test_a_search_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path) -> None:
    uri = str(tmp_path / "a.lance")
    for one in range(9):
        dataset = lance_nb.write_dataset(
            pa.table({"id": [one]}), uri, mode="append" if one else "create"
        )
    dataset.expectations.add("id < 5", name="small")
    seen: list[tuple[int, int]] = []
    found = dataset.expectations.bisect("small", progress=lambda *now: seen.append(now))
    assert found.first_bad == 6
    assert [done for done, _ in seen] == list(range(len(found.tried)))
    assert all(done <= total for done, total in seen)

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError, match="enough"):
        dataset.expectations.bisect("small", progress=cancel)


def test_a_staged_change_names_the_rows_that_it_would_bring(dataset: LanceDataset) -> None:
    dataset.expectations.add("score <= 1", name="bound")  # fails for 9 rows already
    dataset.expectations.add_unique("id", name="key")
    dataset.expectations.add_row_count(maximum=20, name="rows")
    more = pa.table({"id": [3, 40], "score": [7.0, 0.5], "name": ["x", "y"]})
    found = dataset.stage().append(more).check()
    assert (found.num_expectations, found.is_gated, found.is_refused) == (3, False, False)
    assert [one.name for one in found.broken] == ["bound", "key", "rows"]
    assert {name: rows["id"].to_pylist() for name, rows in found.rows.items()} == {
        "bound": [3], "key": [3],
    }  # fmt: skip
    assert found.rows["bound"].column_names == ["score", "id", "name"]
    assert dataset.stage().append(more).check(num_rows=0).rows == {}
    dataset.expectations.set_gate(True)
    assert dataset.stage().append(more).check().is_refused
    assert dataset.stage().delete("id = 15").check().broken == ()
    assert dataset.stage().compact().check().num_expectations == 0
    steps: list[tuple[int, int]] = []
    dataset.stage().append(more).check(progress=lambda *now: steps.append(now))
    assert (0, 3) in steps
    assert dataset.latest_version == dataset.version
