"""Render the review of a branch: as one HTML page for a pull request or a mail, and for a notebook.

The page needs nothing else: no script at all, one style sheet that the content security policy
allows by its hash, and pictures as ``data:`` addresses, only of values that begin as a PNG, JPEG,
GIF or WebP does. Every text of the dataset and of people is escaped in ``html_page.escaped`` and
nowhere else.

Its sections are those of ``review/review.py``, which the page in the explorer shows as well.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from lance_nb.errors import LanceError
from lance_nb.explorer import text
from lance_nb.explorer.html_page import escaped, html_page
from lance_nb.explorer.review.review import MAX_ROWS, Json, ReviewSections

if TYPE_CHECKING:
    from lance_nb.dataset.reviews import Review

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
    title = f"Review of {review.branch} into {review.into}: {review.source.name}"
    return html_page(title, _Page(review).body(), style=_STYLE)


def review_picture(review: Review) -> str:
    """Return the page for the output of a cell, which has no style sheet of its own."""
    title = escaped(f"Review of {review.branch} into {review.into}")
    return f"<details open><summary><b>{title}</b></summary>{_Page(review).body()}</details>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already; the head is text."""
    titles = "".join(f"<th>{escaped(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{titles}</tr>{body}</table></div>'


def _cell(content: str, kind: str = "") -> str:
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def _section(title: str, content: str) -> str:
    return f"<h2>{escaped(title)}</h2>{content}"


def _note(words: str) -> str:
    return f'<p class="dim">{escaped(words)}</p>'


class _Page:
    """Writes the sections of one review as HTML."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._sections = ReviewSections(review)

    def body(self) -> str:
        """Return all sections; one that cannot be made says why."""
        review, sections = self._review, self._sections
        comments = review.comments()
        about = sections.summary(comments)
        parts = [_head(about)]
        if about["problem"]:
            parts.append(_section("Changes", _note(about["problem"])))
        else:
            parts += [
                _made("Schema", lambda: _schema(sections.schema())),
                _made("Changed cells", lambda: self._cells(sections.cells())),
                _made("Rows", lambda: self._rows(sections.rows())),
                _made("Drift", lambda: _drift(sections.drift())),
            ]
        parts.append(_made("Checks", lambda: _checks(sections.checks())))
        parts.append(_section("Discussion", _discussion(sections.discussion(comments))))
        parts += [_note(f"A comment was left out: {problem}") for problem in review.problems]
        return "\n".join(parts)

    def _cells(self, section: Json) -> str:
        if not section["rows"]:
            return _note("No row has changed values.")
        rows = [
            (_cell(escaped(row["place"])), _cell(escaped(row["column"])),
             _cell(self._value(row["before"], "del"), "old"),
             _cell(self._value(row["after"], "ins"), "new"))
            for row in section["rows"]
        ]  # fmt: skip
        more = _note(f"The first {MAX_ROWS} rows are shown.") if section["is_more"] else ""
        return _table(("row", "column", "before", "after"), rows) + more

    def _rows(self, section: Json) -> str:
        parts = []
        for kind, look in zip(section["kinds"], ("new", "old"), strict=True):
            if not kind["rows"]:
                continue
            rows = [[_cell(self._value(value), look) for value in row] for row in kind["rows"]]
            all_ = text.plural(kind["num_rows"], "row")
            count = f"the first {MAX_ROWS}" if kind["is_more"] else all_
            words = escaped(f"Rows {kind['kind']}: {count}")
            parts.append(f"<p>{words}</p>{_table(kind['columns'], rows)}")
        return "".join(parts) or _note("No row was added or removed.")

    def _value(self, value: Json, mark: str = "") -> str:
        """Return one value: a picture, a text with marked words, or a text."""
        if "image" in value:
            encoded = base64.b64encode(self._sections.images[value["image"]]).decode()
            label = escaped(value["label"])
            return f'<img alt="{label}" src="data:{value["mime"]};base64,{encoded}">{label}'
        if "parts" in value:
            return "".join(
                f"<{mark}>{escaped(words)}</{mark}>" if is_changed else escaped(words)
                for is_changed, words in value["parts"]
            )
        if value["text"] is None:
            return '<span class="dim">NULL</span>'
        return escaped(value["text"])


def _made(title: str, maker: Callable[[], str]) -> str:
    try:
        return _section(title, maker())
    except LanceError as error:
        return _section(title, _note(str(error)))


def _head(about: Json) -> str:
    mark = "pass" if about["approved"] else "unknown"
    title = f"{about['label']} into {about['into_label']}"
    return (
        f"<h1>{escaped(title)}</h1>"
        f'<p class="dim">{escaped(about["name"])} · {escaped(about["source"]["label"])} · '
        f"{escaped(about['target']['label'])} · "
        f'<span class="{mark}">{escaped(about["state"])}</span>'
        f"</p><p>{escaped(', '.join(about['facts']) or 'nothing differs')}</p>"
    )


def _schema(table: Json) -> str:
    if not table["rows"]:
        return _note("The columns are the same.")
    rows = [
        [_cell("" if value is None else escaped(value)) for value in row] for row in table["rows"]
    ]
    return _table(table["columns"], rows)


def _drift(section: Json) -> str:
    rows = [
        [
            _cell(escaped(column["name"])),
            _cell("" if column["psi"] is None else f"{column['psi']:.3f}"),
            _cell(escaped(column["before"])),
            _cell(escaped(column["after"])),
        ]
        for column in section["columns"]
    ]
    if not rows:
        return _note("The versions have no column in common.")
    return _table(("column", "stability index", "before", "after"), rows)


def _checks(section: Json) -> str:
    if not section["outcomes"]:
        return _note("The target has no expectations.")
    rows = [
        [f'<td class="{outcome["status"]}">{escaped(outcome["status"])}</td>',
         _cell(escaped(outcome["statement"])), _cell(escaped(outcome["detail"]))]
        for outcome in section["outcomes"]
    ]  # fmt: skip
    return _table(("status", "expectation", "detail"), rows)


_SAID = {"comment": "", "approval": " approved", "changes-requested": " asks for changes"}


def _discussion(comments: list[Json]) -> str:
    if not comments:
        return _note("No comments yet.")
    parts = []
    for comment in comments:
        late = f", of version {comment['version']}" if comment["is_late"] else ""
        look = "say reply" if comment["depth"] else "say"
        who = f"{comment['author']}{_SAID[comment['kind']]}"
        parts.append(
            f'<div class="{look}"><b>{escaped(who)}</b> '
            f'<span class="dim">{escaped(comment["when"] + late)}</span>\n'
            f"{escaped(comment['text'])}</div>"
        )
    return "".join(parts)
