"""Upserts against a dictionary: the same rows, the same counts, the same refusals."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb.errors import MergeInsertError
from tests.support.examples import examples

_NUMBERS = count()
SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.string()), ("v", pa.int64())])

keys = st.one_of(st.none(), st.integers(0, 6))
texts = st.sampled_from(["a", "b", None])
row = st.tuples(keys, texts, st.integers(0, 99))
Row = tuple[Any, ...]


def expected(
    target: list[Row], source: list[Row], on: tuple[int, ...], clauses: dict[str, Any]
) -> tuple[Counter[Row], dict[str, int]] | None:
    """Merge in plain Python; None when it is refused."""

    def key(one: Row) -> Row | None:
        found = tuple(one[place] for place in on)
        return None if None in found else found

    known = {key(one) for one in target} - {None}
    rows: Counter[Row] = Counter()
    updated = deleted = 0
    for one in target:
        partners = [other for other in source if key(other) == key(one) and key(one) is not None]
        passing = [other for other in partners if other[2] >= clauses["least"]]
        if clauses["matched"] == "fail" and partners:
            return None
        if clauses["matched"] == "update" and passing:
            if len(passing) > 1:
                return None
            rows[passing[0]] += 1
            updated += 1
        elif clauses["matched"] == "delete" and partners:
            if len(partners) > 1:
                return None
            deleted += 1
        elif not partners and clauses["lonely"] and one[2] < 50:
            deleted += 1
        else:
            rows[one] += 1
    new = [one for one in source if key(one) not in known] if clauses["inserts"] else []
    rows.update(new)
    stats = {
        "num_inserted_rows": len(new),
        "num_updated_rows": updated,
        "num_deleted_rows": deleted,
    }
    return rows, stats


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip("ktv", one, strict=True)) for one in rows], SCHEMA)


@examples(30)
@given(
    target=st.lists(row, max_size=12),
    source=st.lists(row, max_size=8),
    on=st.sampled_from([(0,), (1,), (0, 1), (1, 0)]),
    matched=st.sampled_from(["keep", "update", "delete", "fail"]),
    others=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    least=st.sampled_from([0, 40]),
    layout=st.tuples(st.integers(1, 5), st.booleans()),
)
def test_an_upsert_is_what_a_dictionary_says(
    *, target, source, on, matched, others, least, layout
) -> None:
    inserts, lonely, streams = others
    clauses = {"matched": matched, "inserts": inserts, "lonely": lonely, "least": least}
    if matched != "update":
        clauses["least"] = 0
    made = lance_nb.write_dataset(
        table(target),
        f"memory://property-merge/{next(_NUMBERS)}",
        max_rows_per_file=layout[0],
        enable_stable_row_ids=layout[1],
    )
    merge = made.merge_insert(["ktv"[place] for place in on])
    if matched == "update":
        merge.when_matched_update_all(f"source.v >= {least}" if least else None)
    elif matched != "keep":
        getattr(merge, f"when_matched_{matched}")()
    if inserts:
        merge.when_not_matched_insert_all()
    if lonely:
        merge.when_not_matched_by_source_delete("v < 50")
    if matched == "keep" and not (inserts or lonely):
        return
    data = table(source)
    outcome = expected(target, source, on, clauses)
    if outcome is None:
        with pytest.raises(MergeInsertError):
            merge.execute(data)
        assert made.version == 1
        return
    rows, stats = outcome
    assert merge.execute(data.to_reader(2) if streams else data) == stats
    found = made.to_table().to_pylist()
    assert Counter(tuple(one[name] for name in "ktv") for one in found) == rows
    ids = made.to_table([], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(ids)
