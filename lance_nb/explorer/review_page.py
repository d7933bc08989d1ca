"""Render the review of a branch: as one HTML page for a pull request or a mail, and for a notebook.

The page needs nothing else: no script at all, one style sheet that the content security policy
allows by its hash, and pictures as ``data:`` addresses, only of values that begin as a PNG, JPEG,
GIF or WebP does. Every text of the dataset and of people is escaped in ``_text`` and nowhere else.

Sections: what the branch is and whether it may be merged; schema; changed cells, old and new side
by side, pictures too, changed words marked inside texts; rows that come and go; drift; checks; the
discussion.

Limits: ``MAX_ROWS`` rows of a kind, ``MAX_COLUMNS`` columns, ``MAX_CHARS`` characters of a cell,
``MAX_IMAGE_BYTES`` of pictures in all; words are compared in texts of up to ``MAX_WORDS`` words.
What is left out is counted.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.dataset.reviews import is_approved
from lance_nb.errors import LanceError
from lance_nb.explorer.models import cells, text
from lance_nb.explorer.models.change_summary import change_drift
from lance_nb.explorer.models.media import THUMBNAIL_BYTES, THUMBNAIL_PIXELS, media_of
from lance_nb.shown_text import visible_lines

if TYPE_CHECKING:
    from lance_nb.dataset.reviews import Review
    from lance_nb.format.reviews import ReviewComment
    from lance_nb.table.diff import Diff

MAX_ROWS = 50
MAX_COLUMNS = 40
MAX_CHARS = 4000
MAX_WORDS = 1500
MAX_IMAGE_BYTES = 6_000_000
_HIDDEN = frozenset({"_rowaddr", "_changed", "_change"})
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_STYLE = """
:root { color-scheme: light dark; --line: #d5d9de; --old: #ffe3e0; --new: #dcf5e0; --dim: #5d6670;
  --mark-old: #ffb3ab; --mark-new: #97dfa5; --card: #f6f7f9; }
@media (prefers-color-scheme: dark) { :root { --line: #3a4048; --old: #3d2422; --new: #1d3524;
  --dim: #9aa4ae; --mark-old: #7d332c; --mark-new: #2c6b3b; --card: #1e2227; } }
body { margin: 0 auto; padding: 20px; max-width: 1100px; font: 14px/1.5 system-ui, sans-serif;
  background: #fff; color: #1c2024; }
@media (prefers-color-scheme: dark) { body { background: #16191d; color: #e6e9ec; } }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 26px 0 8px; }
p { margin: 4px 0; } .dim { color: var(--dim); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: 3px 8px; text-align: left; vertical-align: top; }
th { font-weight: 600; } td { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 460px; }
.old { background: var(--old); } .new { background: var(--new); }
del { background: var(--mark-old); text-decoration: none; border-radius: 2px; }
ins { background: var(--mark-new); text-decoration: none; border-radius: 2px; }
img { display: block; max-width: 220px; max-height: 220px; }
.say { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: 8px 12px; margin: 8px 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.reply { margin-left: 28px; }
.pass { color: #1a7f37; } .fail { color: #cf222e; } .unknown { color: var(--dim); }
@media (prefers-color-scheme: dark) { .pass { color: #57d076; } .fail { color: #ff7b72; } }
"""


def review_page(review: Review) -> str:
    """Return the page as one file."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    title = _text(f"Review of {review.branch} into {review.into}: {review.source.name}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body>{_Page(review).body()}</body></html>\n"
    )


def review_picture(review: Review) -> str:
    """Return the page for the output of a cell, which has no style sheet of its own."""
    title = _text(f"Review of {review.branch} into {review.into}")
    return f"<details open><summary><b>{title}</b></summary>{_Page(review).body()}</details>"


def _text(value: object) -> str:
    return escape(visible_lines(str(value)))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already; the head is text."""
    titles = "".join(f"<th>{_text(one)}</th>" for one in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{titles}</tr>{body}</table></div>'


def _cell(content: str, kind: str = "") -> str:
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def _section(title: str, content: str) -> str:
    return f"<h2>{_text(title)}</h2>{content}"


def _note(words: str) -> str:
    return f'<p class="dim">{_text(words)}</p>'


class _Page:
    """Makes the sections of one review."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._image_bytes = MAX_IMAGE_BYTES

    def body(self) -> str:
        """Return all sections; one that cannot be made says why."""
        review = self._review
        comments = review.comments()
        parts = [self._head(comments)]
        try:
            diff = review.diff
        except LanceError as error:
            parts.append(_section("Changes", _note(str(error))))
        else:
            makers = (
                ("Schema", self._schema), ("Changed cells", self._changed),
                ("Rows", self._rows), ("Drift", self._drift),
            )  # fmt: skip
            parts += [self._made(title, maker, diff) for title, maker in makers]
        parts.append(_section("Checks", self._checks()))
        parts.append(_section("Discussion", _discussion(comments, review.source.version)))
        parts += [_note(f"A comment was left out: {one}") for one in review.problems]
        return "\n".join(parts)

    @staticmethod
    def _made(title: str, maker: object, diff: Diff) -> str:
        try:
            return _section(title, maker(diff))  # type: ignore[operator]
        except LanceError as error:
            return _section(title, _note(str(error)))

    def _head(self, comments: list[ReviewComment]) -> str:
        review = self._review
        version = review.source.version
        approved = is_approved(comments, version)
        state = "approved" if approved else "not approved"
        mark = "pass" if approved else "unknown"
        title = f"{review.branch} into {review.into}"
        try:
            facts = _facts(review.diff)
        except LanceError:
            facts = []
        return (
            f"<h1>{_text(title)}</h1>"
            f'<p class="dim">{_text(review.source.name)} · {_text(review.branch)}:{version} · '
            f'{_text(review.into)}:{review.target.version} · <span class="{mark}">{state}</span>'
            f"</p><p>{_text(', '.join(facts) or 'nothing differs')}</p>"
        )

    @staticmethod
    def _schema(diff: Diff) -> str:
        found = diff.schema
        if not found.num_rows:
            return _note("The columns are the same.")
        return _plain_table(found, MAX_ROWS)

    def _changed(self, diff: Diff) -> str:
        found = diff.cells(limit=MAX_ROWS + 1).read_all()
        if not found.num_rows:
            return _note("No row has changed values.")
        keys, columns = [], []
        for name in found.column_names:
            if pa.types.is_struct(found.schema.field(name).type) and _is_pair(found, name):
                columns.append(name)
            elif name not in _HIDDEN:
                keys.append(name)
        rows = []
        for at in range(min(found.num_rows, MAX_ROWS)):
            place = " · ".join(f"{name} {_one_text(found[name], at)}" for name in keys[:3])
            for name in columns[:MAX_COLUMNS]:
                pair = found[name][at]
                if pair.is_valid:
                    old, new = pair["old"], pair["new"]
                    rows.append((_cell(_text(place)), _cell(_text(name)), *self._both(old, new)))
        more = _note(f"The first {MAX_ROWS} rows are shown.") if found.num_rows > MAX_ROWS else ""
        return _table(("row", "column", "before", "after"), rows) + more

    def _both(self, old: pa.Scalar, new: pa.Scalar) -> tuple[str, str]:
        if cells.is_text(old.type) and cells.is_text(new.type) and old.is_valid and new.is_valid:
            before, after = _marked(old.as_py(), new.as_py())
            return _cell(before, "old"), _cell(after, "new")
        return _cell(self._value(old), "old"), _cell(self._value(new), "new")

    def _value(self, value: pa.Scalar) -> str:
        """Return one value: a picture, or its text."""
        if not value.is_valid:
            return '<span class="dim">NULL</span>'
        if cells.is_binary(value.type):
            data = value.as_buffer()
            if data is not None and data.size <= min(THUMBNAIL_BYTES, self._image_bytes):
                raw = data.to_pybytes()
                media = media_of(raw, len(raw))
                is_small = media.width * media.height <= THUMBNAIL_PIXELS
                if media.kind == "image" and not media.why and is_small:
                    self._image_bytes -= len(raw)
                    encoded = base64.b64encode(raw).decode()
                    label = _text(media.label)
                    return f'<img alt="{label}" src="data:{media.mime};base64,{encoded}">{label}'
        return _text(cells.scalar_text(value, MAX_CHARS))

    def _rows(self, diff: Diff) -> str:
        parts = []
        for kind, look, title in (("added", "new", "added"), ("removed", "old", "removed")):
            found = diff.rows(limit=MAX_ROWS + 1, kinds=[kind]).read_all()
            if not found.num_rows:
                continue
            names = [one for one in found.column_names if one not in _HIDDEN][:MAX_COLUMNS]
            rows = [
                [_cell(self._value(found[name][at]), look) for name in names]
                for at in range(min(found.num_rows, MAX_ROWS))
            ]
            is_more = found.num_rows > MAX_ROWS
            count = f"the first {MAX_ROWS}" if is_more else text.plural(found.num_rows, "row")
            parts.append(f"<p>{_text(f'Rows {title}: {count}')}</p>{_table(names, rows)}")
        return "".join(parts) or _note("No row was added or removed.")

    @staticmethod
    def _drift(diff: Diff) -> str:
        found = change_drift(diff, 0, 24)
        rows = [
            [
                _cell(_text(one["name"])),
                _cell("" if one["psi"] is None else f"{one['psi']:.3f}"),
                *(
                    _cell(_text(", ".join(f"{label} {value}" for label, value in side["facts"])))
                    for side in (one["before"], one["after"])
                ),
            ]
            for one in found["columns"]
        ]
        if not rows:
            return _note("The versions have no column in common.")
        return _table(("column", "stability index", "before", "after"), rows)

    def _checks(self) -> str:
        try:
            found = self._review.checks
        except LanceError as error:
            return _note(str(error))
        if not found.outcomes:
            return _note("The target has no expectations.")
        rows = [
            [
                f'<td class="{one.status}">{_text(one.status)}</td>',
                _cell(_text(one.statement)),
                _cell(_text(one.detail)),
            ]
            for one in found.outcomes
        ]
        return _table(("status", "expectation", "detail"), rows)


def _facts(diff: Diff) -> list[str]:
    """Say what differs, from the manifests."""
    one = diff.counts
    counts = (
        ("rows in", one.rows_in), ("rows out", one.rows_out),
        ("columns added", one.fields_added), ("columns removed", one.fields_removed),
        ("columns changed", one.fields_changed), ("fragments added", one.fragments_added),
        ("fragments removed", one.fragments_removed), ("settings changed", one.config_changed),
        ("versions", one.transactions),
    )  # fmt: skip
    return [f"{words}: {count:,}" for words, count in counts if count]


def _is_pair(table: pa.Table, name: str) -> bool:
    type_ = table.schema.field(name).type
    return [type_.field(at).name for at in range(type_.num_fields)] == ["old", "new"]


def _one_text(column: pa.ChunkedArray, at: int) -> str:
    value = column[at]
    return cells.scalar_text(value, 80) if value.is_valid else "NULL"


def _plain_table(table: pa.Table, limit: int) -> str:
    columns = [cells.cell_texts(column.slice(0, limit), 200) for column in table.columns]
    rows = [
        [_cell("" if one is None else _text(one)) for one in row]
        for row in zip(*columns, strict=True)
    ]
    return _table(table.column_names, rows)


def _marked(old: str, new: str) -> tuple[str, str]:
    """Return two texts with the words that differ marked."""
    old, new = text.cut(old, MAX_CHARS), text.cut(new, MAX_CHARS)
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MAX_WORDS:
        return _text(old), _text(new)
    left, right = [], []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    for tag, a, b, c, d in matcher.get_opcodes():
        one, other = _text("".join(before[a:b])), _text("".join(after[c:d]))
        left.append(one if tag == "equal" or not one else f"<del>{one}</del>")
        right.append(other if tag == "equal" or not other else f"<ins>{other}</ins>")
    return "".join(left), "".join(right)


_SAID = {"comment": "", "approval": " approved", "changes-requested": " asks for changes"}


def _discussion(comments: list[ReviewComment], version: int) -> str:
    if not comments:
        return _note("Nobody has written a comment yet.")
    known = {one.id for one in comments}
    parts = []
    for one in comments:
        late = "" if one.version == version else f", of version {one.version}"
        look = "say reply" if one.reply_to in known else "say"
        who = f"{one.author}{_SAID[one.kind]}"
        when = f"{one.created_at:%Y-%m-%d %H:%M} UTC{late}"
        parts.append(
            f'<div class="{look}"><b>{_text(who)}</b> <span class="dim">{_text(when)}</span>\n'
            f"{_text(one.text)}</div>"
        )
    return "".join(parts)
