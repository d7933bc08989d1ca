"""The review of a branch in sections, for the page in the explorer and for the page in one file.

Layouts, all texts fit to show::

    value       {text: text | null}, {parts: [[is_changed, text], ...]} or {image, mime, label}
    summary     {branch, into, name, source, target, base, facts: [text], state, approved}
    schema      {columns: [text], rows: [[text | null]]}
    cells       {rows: [{place, column, before: value, after: value}], is_more}
    rows        {kinds: [{kind, num_rows, is_more, columns: [text], rows: [[value]]}]}
    drift       {columns: [{name, psi, before, after}]}
    checks      {sentence, outcomes: [{name, statement, status, detail}]}
    discussion  [{id, author, kind, time_ms, when, text, version, is_late, reply_to, depth}]

``source``, ``target`` and ``base`` are ``{branch, version, label}``. ``image`` is the position of
the bytes in ``ReviewSections.images``; only values that begin as a PNG, JPEG, GIF or WebP does are
pictures. ``is_changed``: words that the other side does not have. A comment ``is_late`` if it is
about another version than the one shown; ``depth`` is 1 for answers, which follow what they answer.

Limits: ``MAX_ROWS`` rows of a kind, ``MAX_COLUMNS`` columns, ``MAX_CHARS`` characters of a value,
``MAX_IMAGE_BYTES`` of pictures in all; words are compared in texts of up to ``MAX_WORDS`` words.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset.reviews import is_approved, objects
from lance_nb.errors import LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer.changes.change_summary import change_drift
from lance_nb.explorer.checks.version_checks import outcome_json
from lance_nb.explorer.media import THUMBNAIL_BYTES, THUMBNAIL_PIXELS, media_of
from lance_nb.shown_text import visible_lines

if TYPE_CHECKING:
    from lance_nb.dataset import LanceDataset
    from lance_nb.dataset.reviews import Review
    from lance_nb.explorer.rows.row_order import Progress
    from lance_nb.format.reviews import ReviewComment

MAX_ROWS = 50
MAX_COLUMNS = 40
MAX_CHARS = 4000
MAX_WORDS = 1500
MAX_IMAGE_BYTES = 6_000_000
_HIDDEN = frozenset({"_rowaddr", "_changed", "_change"})
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Json = dict[str, Any]


class ReviewSections:
    """Makes the sections of one review. ``images``: the bytes of the pictures met so far."""

    def __init__(
        self,
        review: Review,
        image_bytes: int = MAX_IMAGE_BYTES,
        progress: Progress | None = None,
    ) -> None:
        self._review = review
        self._progress = progress  # of comparing distributions and of checks
        self._room = image_bytes
        self.images: list[bytes] = []

    def summary(self, comments: Sequence[ReviewComment]) -> Json:
        """Say what the review is about, what differs, and whether it may be merged."""
        review = self._review
        version = review.source.version
        approved = is_approved(list(comments), version)
        base, facts, problem = None, [], ""
        try:
            base, facts = place_json(review.base), _facts(review)
        except LanceError as error:
            problem = text.line(str(error))
        state = "approved" if approved else "not approved"
        if objects(comments):
            state = "changes requested"
        return {
            "branch": review.branch,
            "into": review.into,
            "label": text.name(review.branch),
            "into_label": text.name(review.into),
            "name": text.name(review.source.name),
            "source": place_json(review.source),
            "target": place_json(review.target),
            "base": base,
            "facts": facts,
            "problem": problem,
            "state": state,
            "approved": approved,
        }

    def schema(self) -> Json:
        """Return the columns that differ."""
        table = self._review.diff.schema
        columns = [cells.cell_texts(column.slice(0, MAX_ROWS), 200) for column in table.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return {"columns": list(table.column_names), "rows": rows}

    def cells(self) -> Json:
        """Return the cells that have changed, old and new."""
        table = self._review.diff.cells(limit=MAX_ROWS + 1).read_all()
        keys, columns = [], []
        for name in table.column_names:
            if pa.types.is_struct(table.schema.field(name).type) and _is_pair(table, name):
                columns.append(name)
            elif name not in _HIDDEN:
                keys.append(name)
        rows = []
        for row in range(min(table.num_rows, MAX_ROWS)):
            values = [(name, table[name][row]) for name in keys[:3]]
            place = " · ".join(
                f"{name} {cells.scalar_text(value, 80) if value.is_valid else 'NULL'}"
                for name, value in values
            )
            for name in columns[:MAX_COLUMNS]:
                pair = table[name][row]
                if pair.is_valid:
                    before, after = self._value_pair(pair["old"], pair["new"])
                    rows.append(
                        {
                            "place": visible_lines(place),
                            "column": text.name(name),
                            "before": before,
                            "after": after,
                        }
                    )
        return {"rows": rows, "is_more": table.num_rows > MAX_ROWS}

    def rows(self) -> Json:
        """Return the rows that came and went."""
        kinds = []
        for kind in ("added", "removed"):
            table = self._review.diff.rows(limit=MAX_ROWS + 1, kinds=[kind]).read_all()
            names = [name for name in table.column_names if name not in _HIDDEN][:MAX_COLUMNS]
            shown = range(min(table.num_rows, MAX_ROWS))
            rows = [[self._value(table[name][row]) for name in names] for row in shown]
            kinds.append(
                {
                    "kind": kind,
                    "num_rows": len(shown),
                    "is_more": table.num_rows > MAX_ROWS,
                    "columns": [text.name(name) for name in names],
                    "rows": rows,
                }
            )
        return {"kinds": kinds}

    def drift(self) -> Json:
        """Compare the distributions of the columns that both sides have."""
        drift_page = change_drift(self._review.diff, 0, 24, progress=self._progress)
        columns = [
            {
                "name": column["name"],
                "psi": column["psi"],
                **{
                    side: ", ".join(f"{label} {value}" for label, value in column[side]["facts"])
                    for side in ("before", "after")
                },
            }
            for column in drift_page["columns"]
        ]
        return {"columns": columns}

    def checks(self) -> Json:
        """Return what the expectations of the target find at the branch."""
        result = self._review.check(self._progress)
        return {
            "sentence": text.line(result.sentence),
            "outcomes": [outcome_json(outcome) for outcome in result.outcomes],
        }

    def discussion(self, comments: Sequence[ReviewComment]) -> list[Json]:
        """Return the comments, each answer behind what it answers."""
        version = self._review.source.version
        known_ids = {comment.id for comment in comments}
        answers: dict[str, list[ReviewComment]] = {}
        for comment in comments:
            if comment.reply_to in known_ids:
                answers.setdefault(comment.reply_to or "", []).append(comment)
        entries: list[Json] = []
        # Answers to answers stand below the same comment; a ring of answers is shown once.
        seen: set[str] = set()

        def add(comment: ReviewComment, depth: int) -> None:
            todo = [(comment, depth)]
            while todo:
                current, level = todo.pop()
                if current.id in seen:
                    continue
                seen.add(current.id)
                entries.append(_comment_json(current, version, level))
                todo += [(answer, 1) for answer in reversed(answers.get(current.id, ()))]

        for comment in comments:
            if comment.reply_to not in known_ids:
                add(comment, 0)
        for comment in comments:
            add(comment, 0)
        return entries

    def _value_pair(self, old: pa.Scalar, new: pa.Scalar) -> tuple[Json, Json]:
        if cells.is_text(old.type) and cells.is_text(new.type) and old.is_valid and new.is_valid:
            before, after = marked_words(old.as_py(), new.as_py())
            return {"parts": before}, {"parts": after}
        return self._value(old), self._value(new)

    def _value(self, value: pa.Scalar) -> Json:
        """Return one value: a picture, or its text."""
        if not value.is_valid:
            return {"text": None}
        if cells.is_binary(value.type):
            data = value.as_buffer()
            if data is not None and data.size <= min(THUMBNAIL_BYTES, self._room):
                raw = data.to_pybytes()
                media = media_of(raw, len(raw))
                is_small = media.width * media.height <= THUMBNAIL_PIXELS
                if media.kind == "image" and not media.why and is_small:
                    self._room -= len(raw)
                    self.images.append(raw)
                    label = text.line(media.label)
                    return {"image": len(self.images) - 1, "mime": media.mime, "label": label}
        return {"text": visible_lines(cells.scalar_text(value, MAX_CHARS))}


def place_json(dataset: LanceDataset) -> Json:
    """Return a version as views take it."""
    label = text.ref_label(dataset.branch, dataset.version)
    return {"branch": dataset.branch, "version": dataset.version, "label": label}


def _comment_json(comment: ReviewComment, version: int, depth: int) -> Json:
    return {
        "id": comment.id,
        "author": text.line(comment.author, 200),
        "kind": comment.kind,
        "time_ms": text.milliseconds(comment.created_at),
        "when": f"{comment.created_at:%Y-%m-%d %H:%M} UTC",
        "text": visible_lines(comment.text),
        "version": comment.version,
        "is_late": comment.version != version,
        "reply_to": comment.reply_to,
        "depth": depth,
    }


def _facts(review: Review) -> list[str]:
    """Say what differs, from the manifests."""
    diff_counts = review.diff.counts
    counts = (
        ("rows in", diff_counts.rows_in),
        ("rows out", diff_counts.rows_out),
        ("columns added", diff_counts.fields_added),
        ("columns removed", diff_counts.fields_removed),
        ("columns changed", diff_counts.fields_changed),
        ("fragments added", diff_counts.fragments_added),
        ("fragments removed", diff_counts.fragments_removed),
        ("settings changed", diff_counts.config_changed),
        ("versions", diff_counts.transactions),
    )
    return [f"{words}: {count:,}" for words, count in counts if count]


def _is_pair(table: pa.Table, name: str) -> bool:
    type_ = table.schema.field(name).type
    return [type_.field(index).name for index in range(type_.num_fields)] == ["old", "new"]


Parts = list[tuple[bool, str]]


def marked_words(old: str, new: str) -> tuple[Parts, Parts]:
    """Return two texts in parts, and which parts the other one does not have."""
    old, new = text.cut(old, MAX_CHARS), text.cut(new, MAX_CHARS)
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MAX_WORDS:
        return [(False, visible_lines(old))], [(False, visible_lines(new))]
    left: Parts = []
    right: Parts = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=True)
    for tag, a, b, c, d in matcher.get_opcodes():
        for parts, words in ((left, before[a:b]), (right, after[c:d])):
            if words:
                parts.append((tag != "equal", visible_lines("".join(words))))
    return left, right
