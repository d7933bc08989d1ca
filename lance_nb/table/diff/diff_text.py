"""A diff in a few lines of text: what stands in a terminal.

Source: our own.
"""

from __future__ import annotations

from lance_nb.table.diff.counts import DiffCounts
from lance_nb.table.diff.ends import Ends
from lance_nb.table.snapshot import Snapshot


def diff_text(ends: Ends, counts: DiffCounts, identity: str) -> str:
    """Return the text; a level without differences has no line."""
    bound = "" if counts.rows_exact else "at most "
    lines = [
        f"<lance_nb.Diff {_name(ends.a)} .. {_name(ends.b)}, {counts.transactions} transactions>",
        f"  rows       {bound}{_rows(counts)}, matched by {identity}",
        _line("fragments", counts.fragments_added, counts.fragments_removed,
              counts.fragments_changed),
        _line("files", counts.files_added, counts.files_removed, 0),
        _line("fields", counts.fields_added, counts.fields_removed, counts.fields_changed),
        _line("indices", counts.indices_added, counts.indices_removed, counts.indices_changed),
        _line("settings", counts.config_added, counts.config_removed, counts.config_changed),
    ]  # fmt: skip
    return "\n".join(line for line in lines if line)


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.branch or 'main'}:{snapshot.version}"


def _rows(counts: DiffCounts) -> str:
    total = f"{counts.rows_before:,} -> {counts.rows_after:,}"
    return f"+{counts.rows_in:,} -{counts.rows_out:,} ({total})"


def _line(what: str, added: int, removed: int, changed: int) -> str:
    """Return a line of the repr, nothing when there is nothing to tell."""
    parts = ((added, "+"), (removed, "-"), (changed, "~"))
    text = " ".join(f"{sign}{count:,}" for count, sign in parts if count)
    return f"  {what:<10} {text}" if text else ""
