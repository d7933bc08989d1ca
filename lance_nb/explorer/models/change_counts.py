"""What differs between two versions, in numbers: the chips above the levels of a diff.

Layout of ``to_json``: ``a``, ``b`` (labels), ``same`` (they are one version), ``empty`` (nothing
differs), ``fork`` (where the past of both ends, when they lie on two sides of a fork: ``label``,
``branch``, ``version``, ``a_side``, ``b_side``), ``identity`` (``label``, ``reason``, ``kind``: id,
key or address), ``rows`` (before, after), ``bytes`` (added, removed), ``num_columns``, ``code``,
and ``chips``: per level ``id``, ``label``, ``added``, ``removed``, ``changed``, ``bound`` (whether
the numbers are the most that it can be) and ``note``.

Everything comes from the manifests: see table/diff/counts for what the numbers of rows mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lance_nb.code_lines import PYTHON_ONLY, Python, can_be_listed, magic, offered
from lance_nb.explorer.models import refs, text
from lance_nb.table.diff import Diff
from lance_nb.table.diff.counts import DiffCounts
from lance_nb.table.diff.identity import BY_ADDRESS, BY_ROW_ID


@dataclass(frozen=True, slots=True)
class Chip:
    """The numbers of one level."""

    id: str
    label: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    bound: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """The numbers of a diff, and how its rows are told apart."""

    diff: Diff
    uri: str
    chips: tuple[Chip, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON-able values."""
        diff, counts = self.diff, self.diff.counts
        return {
            "a": text.ref_label(*diff.a),
            "b": text.ref_label(*diff.b),
            "same": diff.a == diff.b,
            "empty": counts.is_empty,
            "fork": _fork(diff),
            "identity": {
                "label": text.line(diff.identity, 200),
                "reason": text.line(diff.reason),
                "kind": {BY_ROW_ID: "id", BY_ADDRESS: "address"}.get(diff.identity, "key"),
            },
            "rows": [counts.rows_before, counts.rows_after],
            "bytes": [counts.bytes_added, counts.bytes_removed],
            "num_columns": len(diff.column_pairs),
            "code": diff_code(diff, self.uri),
            "chips": [asdict(chip) for chip in self.chips],
        }


def change_counts(diff: Diff, uri: str) -> ChangeCounts:
    """Count what differs, from the manifests; ``uri`` is what opens the dataset."""
    one = diff.counts
    chips = (
        Chip("rows", "Rows", one.rows_in, one.rows_out, 0, not one.rows_exact, _rows_note(one)),
        Chip("drift", "Drift"),
        Chip("schema", "Schema", one.fields_added, one.fields_removed, one.fields_changed),
        Chip("transactions", "Transactions", note=str(one.transactions)),
        Chip(
            "fragments", "Fragments", one.fragments_added, one.fragments_removed,
            one.fragments_changed,
        ),
        Chip("deletions", "Deletions", one.rows_undeleted, one.rows_deleted),
        Chip("indices", "Indices", one.indices_added, one.indices_removed, one.indices_changed),
        Chip("config", "Settings", one.config_added, one.config_removed, one.config_changed),
    )  # fmt: skip
    return ChangeCounts(diff, uri, chips)


def _rows_note(one: DiffCounts) -> str:
    """Say what the manifests leave open."""
    if one.rows_exact or one.rows_in or one.rows_out:
        return ""
    return "values may differ"


def _fork(diff: Diff) -> dict[str, Any] | None:
    """Return where two lines of versions parted, None when one lies in the past of the other."""
    sides = dict.fromkeys(("a", "b"), 0)
    for stretch in diff.ends.between:
        sides[stretch.side] += stretch.num_versions
    past = diff.ancestor
    if not sides["a"] or (past is not None and past.branch == diff.a[0] == diff.b[0]):
        return None
    known = {"a_side": sides["a"], "b_side": sides["b"]}
    if past is None:
        return known | {"label": "", "branch": None, "version": None}
    label = text.ref_label(past.branch, past.version)
    return known | {"label": label, "branch": past.branch, "version": past.version}


def diff_code(diff: Diff, uri: str) -> dict[str, str]:
    """Return the expressions that make the same diff, in Python and as a magic."""
    key = diff.matched_by
    asked: dict[str, object] = {}
    if key.reason.startswith("the key that was given"):
        asked["key"] = list(key.key)
    elif key.reason.startswith("asked for"):
        asked["key"] = "_rowid" if key.is_row_id else "_rowaddr"
    ends = (one[1] if one[0] is None else one for one in (diff.a, diff.b))
    python = Python("lance_nb.diff").call(uri, *ends, **asked)
    columns = list(key.key) if key.key and asked else None
    places = "..".join(refs.place_word(*one) for one in (diff.a, diff.b))
    if columns is not None and not can_be_listed(columns):
        return offered(python, PYTHON_ONLY)
    named = None if columns is None else ",".join(columns)
    return offered(python, magic("diff", places, options={"--key": named}))
