from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, PredicateError, VersionNotFoundError

Make = Callable[..., LanceDataset]


@pytest.fixture
def dataset(make: Make, uri: str) -> LanceDataset:
    """Forty versions of ten rows more each; from version 23 on, names are null."""
    made = make()
    for version in range(2, 41):
        names = pa.array([None if version >= 23 else "n"] * 10, pa.string())
        made.insert(pa.table({"id": pa.array([version] * 10, pa.int64()), "name": names}))
    return made


@pytest.mark.parametrize(
    ("statement", "first_bad"),
    [
        ("id < 31", 31),
        ("count(*) <= 70", 8),
        ("SELECT max(id) < 17 FROM dataset", 17),
        (lambda ds: ds.count_rows() < 300, 30),
        ("id >= 0", None),
    ],
)
def test_the_first_bad_version_is_found_in_few_steps(
    dataset: LanceDataset, statement: str, first_bad: int | None
) -> None:
    found = dataset.bisect(statement)
    assert found.first_bad == first_bad
    assert found.last_good == (40 if first_bad is None else first_bad - 1)
    assert len(found.tried) <= 8
    assert str(first_bad or 40) in found.sentence


def test_the_search_can_be_bounded(dataset: LanceDataset) -> None:
    assert dataset.bisect("id < 31", good=20, bad=35).first_bad == 31
    assert dataset.bisect("id < 31", bad=30).first_bad is None
    assert dataset.bisect("id < 31", good=33).first_bad == 33
    dataset.tags.create("released", 33)
    assert dataset.bisect("id < 31", good="released", bad="HEAD~2").first_bad == 33


def test_a_column_that_comes_later_counts_as_before(dataset: LanceDataset) -> None:
    dataset.add_columns({"double": "id * 2"})
    dataset.insert(pa.table({"id": [5], "name": ["x"], "double": pa.array([-1], pa.int64())}))
    for statement in ("double >= 0", "min(double) >= 0"):
        found = dataset.bisect(statement)
        assert found.first_bad == 42
        assert {one.holds for one in found.tried if one.version < 41} == {None}


@pytest.mark.parametrize(
    ("statement", "bounds", "error"),
    [
        ("id <", {}, InvalidInputError),
        ("count(*)", {}, InvalidInputError),
        ("nope > 1", {}, InvalidInputError),
        ("id + 1", {}, PredicateError),
        ("id > 1", {"good": 9, "bad": 3}, InvalidInputError),
        ("id > 1", {"bad": 99}, VersionNotFoundError),
    ],
)
def test_what_cannot_be_searched_is_refused(
    dataset: LanceDataset, statement: str, bounds: dict[str, int], error: type[Exception]
) -> None:
    with pytest.raises(error):
        dataset.bisect(statement, **bounds)


def test_a_branch_is_searched_by_its_own_versions(make: Make, uri: str) -> None:
    branch = make().create_branch("dev")
    branch.delete("id = 3")
    assert branch.bisect("count(*) = 10").first_bad == branch.version
    main = lance_nb.dataset(uri)
    assert main.bisect("count(*) = 10").first_bad is None
    with pytest.raises(InvalidInputError, match="looks at versions of main; 'dev:1' is one of dev"):
        main.bisect("count(*) = 10", good="dev:1")


@pytest.fixture
def scores(make: Make) -> LanceDataset:
    """Versions 2 to 9 add a score and a NULL each; from version 6 on scores are above 1."""
    made = make()
    for version in range(2, 10):
        score = 50.0 if version >= 6 else 0.5
        made.insert(pa.table({"id": pa.array([version] * 2), "score": [score, None]}),
                    mode="overwrite" if version == 2 else "append")  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("statement", "nulls", "first_bad", "num_null"),
    [
        ("score <= 1", "pass", 6, 5),
        ("score <= 1", "fail", 2, 1),
        ("score <= 1 -- a comment", "pass", 6, 5),
        ("score <= 1 OR score IS NULL", "fail", 6, 0),
        ("score <= 99", "pass", None, 8),
        ("score <= 99", "fail", 2, 1),
        ("regexp_like(CAST(score AS string), '^0')", "pass", 6, 5),
    ],
)
def test_rows_for_which_a_filter_is_null_pass_or_fail(
    scores: LanceDataset, statement: str, nulls: str, first_bad: int | None, num_null: int
) -> None:
    found = scores.bisect(statement, good=2, nulls=nulls)

    assert (found.first_bad, found.num_null, found.nulls) == (first_bad, num_null, nulls)
    assert ("NULL for" in found.sentence) is bool(num_null)
    assert ("nulls='fail'" in found.sentence) is (bool(num_null) and nulls == "pass")
    last = next(one for one in found.tried if one.version == 9)
    assert last.num_null == (0 if "OR" in statement else 8)


def test_a_result_is_shown_as_text_with_a_line_for_each_version(scores: LanceDataset) -> None:
    assert repr(scores.bisect("score <= 1", good=5)).splitlines() == [
        (
            "Version 6 (Append) is the first version where the statement is false; it is true at "
            "version 5. 4 versions were checked. The statement is NULL for 5 rows of version 6, "
            "and NULL passes; to make it fail, use nulls='fail'."
        ),
        "  version 5: true    Append, 4 NULL",
        "  version 6: false   Append, 5 NULL",
        "  version 7: false   Append, 6 NULL",
        "  version 9: false   Append, 8 NULL",
    ]
    newest = scores.bisect("score <= 99", good=2, bad=2, nulls="pass")
    assert "1 row of version 2" in str(newest)
    assert str(newest).startswith("The statement is true at version 2.")


def test_a_query_that_is_null_passes_or_fails(scores: LanceDataset) -> None:
    statement = "max(score) FILTER (id > 7) <= 1"
    found = scores.bisect(statement, good=2)
    assert (found.first_bad, found.num_null) == (8, None)
    assert scores.bisect(statement, good=2, nulls="fail").first_bad == 2
    assert scores.bisect(lambda ds: ds.count_rows() < 9, good=2, nulls="fail").first_bad == 6
    with pytest.raises(InvalidInputError, match="write a comparison"):
        scores.bisect("max(score) FILTER (id > 99)")


def test_the_meaning_of_null_is_one_of_two(scores: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="'pass' or 'fail', not 'maybe'"):
        scores.bisect("score <= 1", nulls="maybe")
