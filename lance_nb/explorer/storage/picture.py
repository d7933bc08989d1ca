"""Draw the storage of a version: fragments, deleted rows, advice, and the bytes of the folder."""

from __future__ import annotations

from collections.abc import Sequence

from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    LINE,
    MARGIN,
    WIDTH,
    Panel,
    draw_table,
)
from lance_nb.explorer.messages import integer
from lance_nb.explorer.picture_view import Shown, View, is_near
from lance_nb.explorer.session import MAX_COUNT, RecentAnswers, Session
from lance_nb.explorer.source import stored_source
from lance_nb.explorer.storage.fragments import (
    DeletedRows,
    DeletionBitmap,
    FragmentDetail,
    FragmentMap,
    deletion_bitmap,
    fragment_detail,
    fragment_map,
    most_deleted,
)
from lance_nb.explorer.storage.storage_report import Advice, SpaceUse, space_use, storage_health

MAX_BINS = 300
_STRIP = 96
_BITMAP = 120
_STATE_COLOURS = {
    "current": "add",
    "old": "change",
    "orphan": "remove",
    "bookkeeping": "upkeep",
    "other": "unknown",
}


def draw_fragments(fragment_map: FragmentMap) -> Panel:
    """Draw fragments side by side: width is rows, height bytes for each row, red is deleted."""
    panel = Panel("Fragments")
    totals = fragment_map.totals
    size = totals["bytes"]
    facts = [
        text.plural(fragment_map.num_fragments, "fragment"),
        f"{text.count(totals['rows'] or 0)} stored rows",
        f"{text.share(totals['deleted'] or 0, totals['rows'] or 0)} deleted",
        text.plural(totals["files"] or 0, "data file"),
    ]
    if size is not None:
        facts.append(text.size(size))
    if totals["indices"]:
        covered = text.share(totals["covered"] or 0, totals["rows"] or 0)
        facts.append(f"indices cover {covered}")
    panel.heading(" · ".join(facts))
    bins = _joined(fragment_map)
    rows = sum(fragment_bin[2] for fragment_bin in bins)
    if not rows:
        panel.paragraph("This version has no fragments.")
        return panel
    room = WIDTH - 2 * MARGIN
    heaviest = (
        max(fragment_bin[4] / fragment_bin[2] for fragment_bin in bins if fragment_bin[2]) or 1.0
    )
    x, top = float(MARGIN), panel.height
    base = top + _STRIP
    for first, count, stored, deleted, size_bytes, files in bins:
        wide = room * stored / rows
        weight = size_bytes / stored if stored else 0.0
        high = 14 + (_STRIP - 14) * weight / heaviest
        deleted_height = high * deleted / stored if stored else 0.0
        name = f"fragment {first:.0f}" if count == 1 else f"{count:.0f} fragments from {first:.0f}"
        tip = (
            f"{name}: {text.count(int(stored))} rows, {text.count(int(deleted))} deleted, "
            f"{text.size(int(size_bytes))}, {text.plural(int(files), 'file')}"
        )
        gap = 1.0 if wide > 3 else 0.0
        panel.rect(x, base - high, wide - gap, high, "accent", opacity=0.55, tip=tip)
        if deleted_height:
            panel.rect(
                x,
                base - deleted_height,
                wide - gap,
                deleted_height,
                "remove",
                opacity=0.85,
                tip=tip,
            )
        if wide > 30:
            panel.text(x + 4, base - 4, f"{first:.0f}", size=10, colour="ink", width=wide - 8)
        panel.words.append(tip if len(panel.words) < 24 else "")
        x += wide
    panel.line(MARGIN, base + 0.5, WIDTH - MARGIN, base + 0.5, colour="soft")
    panel.text(MARGIN, base + 15, "width: rows · height: bytes for each row · red: deleted rows",
               size=11, colour="faint")  # fmt: skip
    panel.height = base + 20
    return panel


def _joined(fragment_map: FragmentMap) -> list[tuple[float, ...]]:
    """Return id, count, rows, deleted, bytes and files of at most ``MAX_BINS`` bins."""
    values = list(zip(*(column.tolist() for column in fragment_map.columns[:6]), strict=True))
    step = -(-len(values) // MAX_BINS) or 1
    return [
        (
            values[start][0],
            *(sum(part) for part in list(zip(*values[start : start + step], strict=True))[1:]),
        )
        for start in range(0, len(values), step)
    ]


def draw_fragment(detail: FragmentDetail) -> Panel:
    """Draw what a fragment is made of."""
    panel = Panel(f"Fragment {detail.id}")
    size = "" if detail.bytes is None else f" · {text.size(detail.bytes)}"
    panel.heading(f"{text.count(detail.rows)} rows, {text.count(detail.deleted)} deleted{size}")
    rows = [
        (
            file.name,
            "" if file.bytes is None else text.size(file.bytes),
            file.file_version,
            file.written,
            ", ".join(file.columns),
        )
        for file in detail.files
    ]
    note = f"{text.count(detail.hidden_files)} more" if detail.hidden_files else ""
    draw_table(panel, ("file", "size", "format", "written by", "columns"), rows, note=note)
    return panel


def draw_deletions(bitmap: DeletionBitmap, fragment: int, most: Sequence[DeletedRows]) -> Panel:
    """Draw the rows of a fragment as pixels, the deleted ones red."""
    panel = Panel("Deleted rows")
    panel.heading(
        f"fragment {fragment}: {text.count(bitmap.num_deleted)} of "
        f"{text.count(bitmap.num_rows)} rows ({text.share(bitmap.num_deleted, bitmap.num_rows)})"
    )
    wide = WIDTH - 2 * MARGIN
    pixels = len(bitmap.pixels)
    side = max(1.0, min(9.0, (wide * _BITMAP / max(1, pixels)) ** 0.5))
    columns = max(1, int(wide / side))
    top = panel.height
    lines = -(-pixels // columns)
    panel.rect(MARGIN, top, min(pixels, columns) * side, lines * side, "wash")
    for colour, shades in (("change", range(1, 128)), ("remove", range(128, 256))):
        panel.area(_runs(bitmap.pixels, columns, side, top=top, shades=shades), colour)
    panel.height = top + lines * side + 6
    each = text.plural(bitmap.rows_per_pixel, "row")
    panel.text(MARGIN, panel.height + 10, f"each square is {each}, in row order; red: deleted",
               size=11, colour="faint")  # fmt: skip
    panel.height += LINE
    if len(most) > 1:
        rows = [
            (
                str(fragment_rows.id),
                text.count(fragment_rows.rows),
                text.count(fragment_rows.deleted),
                text.share(fragment_rows.deleted, fragment_rows.rows),
            )
            for fragment_rows in most[:8]
        ]
        draw_table(panel, ("fragment", "rows", "deleted", "share"), rows,
                   numeric=frozenset({0, 1, 2, 3}), width=WIDTH / 2)  # fmt: skip
    return panel


def _runs(
    pixels: bytes, columns: int, side: float, top: float, shades: range
) -> list[tuple[float, float, float, float]]:
    """Return the runs of pixels with one of these shades as rectangles."""
    runs = []
    for start in range(0, len(pixels), columns):
        line = pixels[start : start + columns]
        position, y = 0, top + start // columns * side
        while position < len(line):
            if line[position] in shades:
                end = position
                while end < len(line) and line[end] in shades:
                    end += 1
                gap = 1 if side > 4 else 0
                runs.append(
                    (MARGIN + position * side, y, (end - position) * side - gap, side - gap)
                )
                position = end
            else:
                position += 1
    return runs


def draw_advice(advice: Sequence[Advice]) -> Panel:
    """Draw what would improve the storage."""
    panel = Panel("Advice")
    panel.heading("" if advice else "nothing to do")
    for entry in advice:
        panel.text(MARGIN, panel.height + 13, entry.title, weight=600, width=WIDTH - 2 * MARGIN)
        panel.words.append(entry.title)
        panel.height += LINE
        panel.paragraph(entry.text, lines=3)
        if entry.python:
            panel.text(MARGIN, panel.height + 12, entry.python, size=11, colour="accent",
                       width=WIDTH - 2 * MARGIN)  # fmt: skip
            panel.height += LINE
        panel.height += 4
    return panel


def draw_space(space: SpaceUse) -> Panel:
    """Draw the bytes of the folder by state, and what tags, branches and versions hold alone."""
    panel = Panel("Space")
    panel.heading(f"{text.size(space.total)} in {text.plural(space.files, 'file')}")
    room, x, top = WIDTH - 2 * MARGIN, float(MARGIN), panel.height
    for state in space.states:
        wide = room * state["bytes"] / max(1, space.total)
        if not state["bytes"]:
            continue
        tip = f"{state['name']}: {text.size(state['bytes'])}, {state['title']}"
        panel.rect(x, top, wide, 24, _STATE_COLOURS[state["name"]], opacity=0.75, tip=tip)
        x += wide
    panel.height = top + 32
    for state in space.states:
        if not state["bytes"]:
            continue
        panel.rect(MARGIN, panel.height + 4, 9, 9, _STATE_COLOURS[state["name"]], opacity=0.75)
        words = f"{state['name']} {text.size(state['bytes'])}"
        panel.text(MARGIN + 15, panel.height + 13, words, weight=600)
        panel.text(MARGIN + 190, panel.height + 13, state["title"], colour="faint")
        panel.words.append(words)
        panel.height += LINE
    panel.height += 6
    head = ("held alone by", "version", "bytes", "in all")
    rows = [(f"{ref['kind']} {ref['name']}", ref["place"], text.size(ref["own"]),
             text.size(ref["held"])) for ref in space.refs[:12]]  # fmt: skip
    rows += [
        (
            f"version {version['version']}",
            version["place"],
            text.size(version["own"]),
            text.size(version["held"]),
        )
        for version in space.versions[:8]
        if version["own"]
    ]
    draw_table(panel, head, rows, numeric=frozenset({2, 3}), width=WIDTH * 0.7)
    for problem in space.damaged:
        panel.paragraph(problem, colour="remove", lines=2)
    return panel


MAX_COUNTED = 200


PIXELS = 24_000


def draw_storage_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw fragments, the one that is open, deleted rows, advice, and the space once counted."""
    source = stored_source(session.dataset)
    panels = draw_fragments_view(session, shown)
    if shown.get("fragment") is not None:
        fragment = integer(shown, "fragment", low=0, high=MAX_COUNT)
        panels.append(draw_fragment(fragment_detail(source, fragment)))
    if most_deleted(source):
        panels += DELETIONS.panels(session, {"deletions": shown})
    panels.append(draw_advice(storage_health(source)))
    return [*panels, *SPACE.panels(session, {})]


def draw_fragments_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the map of the fragments."""
    return [draw_fragments(fragment_map(stored_source(session.dataset)))]


def draw_deletions_view(session: Session, shown: Shown) -> list[Panel]:
    """Draw the deleted rows of a fragment: the one that is open, or the one with most."""
    source = stored_source(session.dataset)
    most = most_deleted(source)
    fragment = shown.get("fragment")
    if fragment is None:
        if not most:
            panel = Panel("Deleted rows")
            panel.heading("no row of this version is deleted")
            return [panel]
        fragment = most[0].id
    chosen = integer({"fragment": fragment}, "fragment", low=0, high=MAX_COUNT)
    bitmap = deletion_bitmap(source, chosen, 0, num_rows=MAX_COUNT, max_pixels=PIXELS)
    return [draw_deletions(bitmap, chosen, most)]


def draw_space_view(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the bytes of the folder: as they were counted, or counted now if that is little work."""
    recent, source = session.keep(RecentAnswers), stored_source(session.dataset)
    if recent.space is None:
        if not is_near(session) or len(source.version_numbers()) > MAX_COUNTED:
            return []
        recent.space = space_use(source.space())
    return [draw_space(recent.space)]


FRAGMENTS = View("", draw_fragments_view)
DELETIONS = View("deletions", draw_deletions_view)
SPACE = View("", draw_space_view)
STORAGE = View("storage", draw_storage_view)
