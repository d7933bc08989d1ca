"""What every diff must be: applied to the rows of one version, it gives those of the other."""

from __future__ import annotations

from typing import Any

from lance_nb.table.diff import Diff

Rows = dict[int, dict[str, Any]]  # by the column "id", which no two rows ever share


def _shared(a: Rows, b: Rows) -> list[str]:
    one, other = next(iter(a.values())), next(iter(b.values()))
    return [name for name in other if name in one]


def check_diff(diff: Diff, a: Rows, b: Rows) -> None:
    """Apply a diff to the rows of one version: the rows of the other must come out."""
    rows = diff.rows().read_all().to_pylist()
    cells = diff.cells().read_all().to_pylist()
    kinds = {
        kind: {row["id"]: row for row in rows if row["_change"] == kind}
        for kind in ("changed", "added", "removed")
    }
    names = _shared(a, b)
    result = {number: {name: a[number][name] for name in names} for number in a}
    for number, row in kinds["removed"].items():
        assert a[number] == {name: row[name] for name in a[number]}
        del result[number]
    for (number, row), cell in zip(kinds["changed"].items(), cells, strict=True):
        assert row["_changed"] == [n for n in names if a[number][n] != b[number][n]]
        for name in row["_changed"]:
            assert cell[name] == {"old": a[number][name], "new": b[number][name]}
            result[number][name] = cell[name]["new"]
    for number, row in kinds["added"].items():
        assert b[number] == {name: row[name] for name in b[number]}
        result[number] = {name: row[name] for name in names}
    assert result == {number: {name: b[number][name] for name in names} for number in b}
    summary = diff.summary()
    assert (summary.added, summary.removed, summary.changed) == tuple(
        len(kinds[kind]) for kind in ("added", "removed", "changed")
    )
    if diff.identity != "row address":
        assert kinds["added"].keys() == b.keys() - a.keys()
        assert kinds["removed"].keys() == a.keys() - b.keys()
    counts = diff.counts
    assert summary.added <= counts.rows_in
    assert summary.removed <= counts.rows_out
    if counts.rows_exact:
        assert (summary.added, summary.removed) == (counts.rows_in, counts.rows_out)
