"""Render a screen or a value as text and static HTML: for terminals, saved notebooks and e-mail.

Layout of the HTML: one ``<details open>`` with plain headings and tables, without style or script,
because GitHub and nbviewer strip both and the result must still be readable. In a notebook it
stands behind the live widget and its picture (``behind``). Every text is escaped in ``_text`` and
``render_preformatted`` and nowhere else; the templates hold no other variable part.

Limits: ``MAX_ROWS`` rows, ``MAX_COLUMNS`` columns and ``MAX_VERSIONS`` versions are rendered;
``MAX_FACTS`` of a single value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from html import escape
from typing import TYPE_CHECKING

from lance_nb.explorer import text
from lance_nb.explorer.error_card import ErrorCard, error_card
from lance_nb.explorer.history.value_facts import ValueFacts
from lance_nb.explorer.history.versions import (
    DatasetCard,
    Timeline,
    VersionBar,
    VersionDetail,
)
from lance_nb.explorer.tables import table_list
from lance_nb.format.transaction_summary import operation_title
from lance_nb.shown_text import visible, visible_lines
from lance_nb.value_classes import dataclass

# A terminal renders tables of texts, and loads nothing that reads rows for it.
if TYPE_CHECKING:
    from lance_nb.dataset.database import Database, TableSummary
    from lance_nb.explorer.media import Thumbnail
    from lance_nb.explorer.session import FirstRows, Part

Images = Mapping[tuple[int, int], "Thumbnail"]
MAX_ROWS = 8
MAX_COLUMNS = 8
MAX_VERSIONS = 8
MAX_FACTS = 30
IMAGE_HIGH = 56  # pixels
_CELL_CHARS = 48
_URI_CHARS = 300
LEFT = ' style="text-align:left"'


# A live widget hides what follows it; a widget without a kernel is hidden itself, but not what was
# printed before a picture whose widget was not saved.
_BEHIND_STYLE = """<style>
.jp-OutputArea-child:has(.lnb-live) + .jp-OutputArea-child:has(.jp-RenderedSVG),
.jp-OutputArea-child:has(.lnb-live) + .jp-OutputArea-child + .jp-OutputArea-child:has(.lnb-static),
.jp-OutputArea-child:not(:has(.lnb-live, [data-mime-type$="jupyter.stdout"])):has(
  + .jp-OutputArea-child + .jp-OutputArea-child .lnb-static) { display: none }
</style>"""


@dataclass(frozen=True, slots=True, repr=False)
class StaticRendering:
    """The same thing as plain text and as static HTML."""

    text: str
    html: str

    def __post_init__(self) -> None:
        """Escape what a terminal would take for a command."""
        object.__setattr__(self, "text", visible_lines(self.text))

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


@dataclass(frozen=True, slots=True)
class _Grid:
    """A small table: texts only, the first row is its head."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    numeric: frozenset[int] = frozenset()
    images: Images = field(default_factory=dict)


def render_parts(parts: Iterable[Part]) -> StaticRendering:
    """Render the parts of a first screen."""
    return _rendering([_block(part) for part in parts])


def render_table(
    heading: str,
    lines: tuple[str, ...],
    table: tuple[Sequence[str], Sequence[Sequence[str]]],
    *,
    numeric: Iterable[int] = (),
    note: str = "",
    images: Images | None = None,
) -> StaticRendering:
    """Render lines of prose and a table (its header, its rows); without rows there is no table.

    ``images`` stand in the HTML in place of the texts of their cells, by row and column.
    """
    head, rows = table
    texts = tuple(tuple(row) for row in rows)
    numbers = frozenset(numeric)
    grid = _Grid(tuple(head), texts, note, numeric=numbers, images=images or {}) if texts else None
    return _rendering([_Block(heading, lines, grid)])


def render_tables(
    database: Database, summaries: Sequence[TableSummary], num_tables: int
) -> StaticRendering:
    """Render the tables of a database, of which some may not have been described."""
    left = num_tables - len(summaries)
    lines = (text.line(database.uri, _URI_CHARS), text.plural(num_tables, "table"))
    note = text.plural(left, "more table") if left > 0 else ""
    table = (table_list.HEAD, [table_list.table_line(summary) for summary in summaries])
    heading = f"Tables of {text.name(database.name)}"
    return render_table(heading, lines, table, numeric=table_list.NUMERIC, note=note)


def render_facts(facts: ValueFacts) -> StaticRendering:
    """Render the facts of a value, the first ``MAX_FACTS`` of them."""
    left = len(facts.rows) - MAX_FACTS
    note = f"{text.count(left)} more" if left > 0 else ""
    table = (("", ""), facts.rows[:MAX_FACTS])
    return render_table(facts.heading, facts.lines, table, note=note)


def render_preformatted(heading: str, lines: Sequence[str]) -> StaticRendering:
    """Render lines whose columns must stay aligned."""
    body = "\n".join(map(visible, lines))
    summary = f"<summary><b>{_text(heading)}</b></summary>"
    html = f"<details open>{summary}<pre>{escape(body)}</pre></details>"
    return StaticRendering(f"{heading}\n\n{body}", html)


def render_error(error: BaseException) -> StaticRendering:
    """Render an error."""
    return render_parts([error_card(error)])


def behind(picture: StaticRendering) -> str:
    """Return the HTML of a rendering that is hidden for as long as a live widget precedes it."""
    folded = picture.html.replace("<details open>", "<details>", 1)
    return f'{_BEHIND_STYLE}<div class="lnb-static">{folded}</div>'


@dataclass(frozen=True, slots=True)
class _Block:
    """One part of a rendering: a heading, lines of prose, and perhaps a table."""

    heading: str
    lines: tuple[str, ...]
    grid: _Grid | None = None


def _block(part: Part) -> _Block:
    from lance_nb.explorer.session import FirstRows

    if isinstance(part, DatasetCard):
        return _card_block(part)
    if isinstance(part, Timeline):
        return _versions_block(part)
    if isinstance(part, FirstRows):
        return _rows_block(part)
    if isinstance(part, ErrorCard):
        where = part.where and f"Where: {part.where}"
        lines = (part.message, where, f"What to do: {part.hint}")
        return _Block(part.title, tuple(filter(None, lines)))
    return _detail_block(part)


def _card_block(card: DatasetCard) -> _Block:
    tags = "".join(f" · tag {tag}" for tag in card.tags)
    facts = " · ".join(f"{fact.value} {_fact_words(fact.key)}" for fact in card.facts)
    return _Block(f"{card.name} · {card.label}{tags}", (facts,))


def _fact_words(key: str) -> str:
    return {"size": "of data files", "format": "file format"}.get(key, key)


def _versions_block(model: Timeline) -> _Block:
    bars = [bar for lane in model.lanes for bar in lane.details if lane.branch == model.branch]
    tags = {(tag.branch, tag.version): tag.name for tag in model.tags}
    rows = tuple(
        (
            f"{bar.version}{' (shown)' if bar.version == model.version else ''}",
            bar.time,
            operation_title(bar.operation),
            _change(bar.added, bar.removed),
            "" if bar.rows is None else text.count(bar.rows),
            tags.get((model.branch, bar.version), ""),
            bar.message,
        )
        for bar in _near(bars, model.version)
    )
    head = ("version", "time", "operation", "rows changed", "rows", "tag", "message")
    used = [index for index in range(len(head)) if index < 3 or any(row[index] for row in rows)]
    numeric = frozenset(place for place, index in enumerate(used) if "rows" in head[index])
    grid = _Grid(_only(head, used), tuple(_only(row, used) for row in rows), numeric=numeric)
    total = sum(length for lane in model.lanes for _, length in lane.runs)
    branches = [text.name(lane.branch or "main") for lane in model.lanes]
    about = f"{text.plural(total, 'version')} on {', '.join(branches)}"
    return _Block("Versions", (about,), grid)


def _near(bars: Sequence[VersionBar], version: int) -> list[VersionBar]:
    """Up to ``MAX_VERSIONS`` bars around the version shown, newest first."""
    newest_first = sorted(bars, key=lambda bar: -bar.version)
    older = sum(bar.version <= version for bar in bars)
    stop = max(MAX_VERSIONS, min(len(bars), len(bars) - older + MAX_VERSIONS // 2))
    return newest_first[max(0, stop - MAX_VERSIONS) : stop]


def _only(row: tuple[str, ...], columns: Iterable[int]) -> tuple[str, ...]:
    return tuple(row[column] for column in columns)


def _change(added: int | None, removed: int | None) -> str:
    gains = f"+{text.count(added)}" if added else ""
    losses = f"−{text.count(removed)}" if removed else ""
    return f"{gains} {losses}".strip()


def _rows_block(part: FirstRows) -> _Block:
    from lance_nb.explorer.rows.row_page import page_texts

    page, columns = part.page, part.page.columns[:MAX_COLUMNS]
    texts = page_texts(page)[:MAX_COLUMNS]
    rows = tuple(
        (str(page.offset + row), *(_cell(column[row]) for column in texts))
        for row in range(min(page.num_rows, MAX_ROWS))
    )
    left_out = []
    if part.num_rows > len(rows):
        left_out.append(f"{text.plural(part.num_rows - len(rows), 'more row')}")
    if part.num_columns > len(columns):
        left_out.append(f"{text.plural(part.num_columns - len(columns), 'more column')}")
    head = ("", *(column.name for column in columns))
    numeric = {0, *(index for index, column in enumerate(columns, 1) if not column.extra)}
    grid = _Grid(head, rows, " and ".join(left_out), frozenset(numeric))
    return _Block("Rows", () if rows else ("This version has no rows.",), grid if rows else None)


def _cell(value: str | None) -> str:
    return "null" if value is None else text.cut(value, _CELL_CHARS)


def _detail_block(detail: VersionDetail) -> _Block:
    fields = [f"{line.name}: {line.type}" for line in detail.schema.lines if not line.depth]
    lines = [
        f"{detail.time} · {operation_title(detail.operation)}",
        detail.message,
        detail.description,
    ]
    lines.append(f"Schema: {text.cut(', '.join(fields), 1200)}")
    return _Block(f"Version {detail.label}", tuple(filter(None, lines)))


def _rendering(blocks: Sequence[_Block]) -> StaticRendering:
    plain = "\n\n".join(_block_text(block) for block in blocks)
    parts = "".join(_block_html(block, summary=not number) for number, block in enumerate(blocks))
    return StaticRendering(plain, f"<details open>{parts}</details>")


def _block_text(block: _Block) -> str:
    lines = [block.heading, *block.lines]
    if block.grid is not None:
        table = [block.grid.head, *block.grid.rows]
        widths = [max(len(row[index]) for row in table) for index in range(len(block.grid.head))]
        for row in table:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  " + "  ".join(cells).rstrip())
        if block.grid.note:
            lines.append(f"  {text.ELLIPSIS} {block.grid.note}")
    return "\n".join(lines)


def _text(value: str) -> str:
    """Make a text safe between tags and inside quoted attributes."""
    return escape(visible(value), quote=True)


def _block_html(block: _Block, *, summary: bool) -> str:
    heading = _text(block.heading)
    tag = "summary" if summary else "p"
    lines = "".join(f"<p>{_text(line)}</p>" for line in block.lines)
    table = "" if block.grid is None else _grid_html(block.grid)
    return f"<{tag}><b>{heading}</b></{tag}>{lines}{table}"


def _grid_html(grid: _Grid) -> str:
    head = _line_html("th", grid.head, grid.numeric)
    rows = "".join(
        _line_html("td", row, grid.numeric, {
            column: image for (number, column), image in grid.images.items() if number == index
        })
        for index, row in enumerate(grid.rows)
    )  # fmt: skip
    note = f"<p>{text.ELLIPSIS} {_text(grid.note)}</p>" if grid.note else ""
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{note}"


def _line_html(
    tag: str,
    cells: Sequence[str],
    numeric: frozenset[int],
    images: Mapping[int, Thumbnail] | None = None,
) -> str:
    """Write one table row; notebooks set all cells to the right, which suits numbers only."""
    parts = (
        f"<{tag}{'' if index in numeric else LEFT}>{_cell_html(cell, images, index)}</{tag}>"
        for index, cell in enumerate(cells)
    )
    return f"<tr>{''.join(parts)}</tr>"


def _cell_html(cell: str, images: Mapping[int, Thumbnail] | None, index: int) -> str:
    image = (images or {}).get(index)
    if image is None:
        return _text(cell)
    source = f"data:{image.media.mime};base64,{image.base64}"
    return f'<img src="{source}" alt="{_text(cell)}" title="{_text(cell)}" height="{IMAGE_HIGH}">'
