"""What every diff must be: applied to the rows of one version, it gives those of the other."""

from __future__ import annotations

from typing import Any

from lance_nb.table.diff import Diff

Rows = dict[int, dict[str, Any]]  # by a column that no two rows ever share


def check_diff(diff: Diff, a: Rows, b: Rows, by: str = "id") -> None:
    """Apply a diff to the rows of one version: the rows of the other must come out."""
    rows = diff.rows().read_all().to_pylist()
    cells = diff.cells().read_all().to_pylist()
    kinds = {
        kind: {row[by]: row for row in rows if row["_change"] == kind}
        for kind in ("changed", "added", "removed")
    }
    shared = {pair.name: pair.a.name for pair in diff.column_pairs if pair.is_shared and pair.a}
    shown = {pair.a.name: pair.name for pair in diff.column_pairs if pair.a}
    result = {number: {new: row[old] for new, old in shared.items()} for number, row in a.items()}
    expected = {number: {name: row[name] for name in shared} for number, row in b.items()}
    for number, row in kinds["removed"].items():
        assert a[number] == {name: row[shown[name]] for name in a[number]}
        del result[number]
    for (number, row), cell in zip(kinds["changed"].items(), cells, strict=True):
        old = result[number]
        assert row["_changed"] == [n for n in shared if old[n] != expected[number][n]]
        for name in row["_changed"]:
            assert cell[name] == {"old": old[name], "new": b[number][name]}
            old[name] = cell[name]["new"]
    for number, row in kinds["added"].items():
        assert b[number] == {name: row[name] for name in b[number]}
        result[number] = {name: row[name] for name in shared}
    assert result == expected
    _check_numbers(diff, {kind: len(found) for kind, found in kinds.items()})
    if diff.identity != "row address":
        assert kinds["added"].keys() == b.keys() - a.keys()
        assert kinds["removed"].keys() == a.keys() - b.keys()


def _check_numbers(diff: Diff, found: dict[str, int]) -> None:
    summary, counts = diff.summary(), diff.counts
    assert {
        "added": summary.added,
        "removed": summary.removed,
        "changed": summary.changed,
    } == found
    assert summary.added <= counts.rows_in
    assert summary.removed <= counts.rows_out
    if counts.rows_exact:
        assert (summary.added, summary.removed) == (counts.rows_in, counts.rows_out)
