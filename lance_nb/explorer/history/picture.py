"""Draw the header of a dataset, its timeline, a version in detail, its branches and tags.

On the timeline a bar is a version: its height grows with the rows that the version changed, its
colour and sign say the operation, flags above are tags, a lane is a branch with a line from where
it started. Of more than ``MAX_SLOTS`` version numbers those around the version shown are drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import sqrt

from lance_nb.explorer import text
from lance_nb.explorer.drawing import (
    MARGIN,
    MAX_LINES,
    WIDTH,
    Panel,
    draw_table,
    draw_terms,
    width_of,
)
from lance_nb.explorer.error_card import ErrorCard
from lance_nb.explorer.history.value_facts import ValueFacts
from lance_nb.explorer.history.versions import (
    DatasetCard,
    Lane,
    Timeline,
    VersionBar,
    VersionDetail,
)
from lance_nb.explorer.picture_view import Shown, View, draw_error
from lance_nb.explorer.session import RecentAnswers, Session, place_of
from lance_nb.format.transaction_summary import OPERATION_TITLES, operation_title

MAX_SLOTS = 64
_MAIN_BAR, _BRANCH_BAR, _FLAGS = 54, 28, 17
_LABELS = 96
# The colour and the sign of an operation, as in js/operations.js.
_LOOKS: Mapping[str, tuple[str, str]] = {
    "Append": ("add", "+"),
    "Delete": ("remove", "−"),
    "Update": ("change", "~"),
    "Overwrite": ("replace", "="),
    "Restore": ("replace", "↶"),
    "Merge": ("schema", "▦"),
    "Project": ("schema", "▦"),
    "DataReplacement": ("schema", "▦"),
    "DataOverlay": ("schema", "▦"),
    "Rewrite": ("upkeep", "◇"),
    "CreateIndex": ("upkeep", "⌕"),
    "UpdateConfig": ("upkeep", "⚙"),
    "ReserveFragments": ("upkeep", "·"),
    "UpdateBases": ("upkeep", "⚙"),
    "UpdateMemWalState": ("upkeep", "⚙"),
    "Clone": ("fork", "↳"),
    "Unknown": ("unknown", "?"),
    "Damaged": ("unknown", "!"),
}


def draw_card(card: DatasetCard) -> Panel:
    """Draw the header: name, version shown, tags, figures."""
    panel = Panel("")
    panel.text(MARGIN, 18, card.name, size=15, weight=600, width=WIDTH / 2)
    left = MARGIN + min(width_of(card.name, 15, bold=True), WIDTH / 2) + 12
    panel.text(left, 18, card.label, size=13, weight=600, colour="accent", width=WIDTH / 5)
    left += width_of(card.label, 13, bold=True) + 12
    for tag in card.tags:
        if left > WIDTH - 120:
            break
        panel.text(left, 18, f"⚑ {tag}", colour="flag", width=WIDTH - left - MARGIN)
        left += width_of(tag) + 28
    facts = [(fact.value, _fact_words(fact.key, fact.value)) for fact in card.facts]
    left = MARGIN
    for value, words in facts:
        panel.text(left, 40, value, weight=600)
        left += width_of(value, bold=True) + 5
        panel.text(left, 40, words, colour="faint")
        left += width_of(words) + 22
    panel.height = 48
    sentence = ", ".join(f"{value} {words}" for value, words in facts)
    panel.words.append(f"{card.name}, version {card.label}, {sentence}")
    return panel


def _fact_words(key: str, value: str) -> str:
    words = {"size": "of data files", "format": "file format"}.get(key, key)
    return words.removesuffix("s") if value == "1" else words


def draw_timeline(model: Timeline, marked: Mapping[str, tuple[str | None, int]] = {}) -> Panel:
    """Draw the versions of all branches; ``marked`` are versions with a letter, A and B."""
    total = sum(length for lane in model.lanes for _, length in lane.runs)
    panel = Panel("Versions")
    panel.heading(f"{text.plural(total, 'version')} on {_branches(len(model.lanes))}")
    numbers = _numbers(model)
    if not numbers:
        return panel
    slot = max(8.0, min(34.0, (WIDTH - 2 * MARGIN - _LABELS) / len(numbers)))
    most = max((_changed(bar) for lane in model.lanes for bar in lane.details), default=1)
    axis = {number: MARGIN + _LABELS + position * slot for position, number in enumerate(numbers)}
    tops: dict[str | None, float] = {}
    for lane in model.lanes:
        flags = [tag for tag in model.tags if tag.branch == lane.branch and tag.version in axis]
        tall = _BRANCH_BAR if lane.branch else _MAIN_BAR
        base = panel.height + (_FLAGS if flags else 2) + tall
        tops[lane.branch] = base
        _draw_fork(panel, lane, axis, tops=tops, base=base)
        panel.text(MARGIN, base - 4, text.name(lane.branch or "main"), width=_LABELS - 10,
                   colour="soft", weight=600 if lane.branch == model.branch else 400)  # fmt: skip
        bars = {bar.version: bar for bar in lane.details}
        for number in _of_lane(lane, numbers):
            bar = bars.get(number)
            colour, sign = _look(bar)
            high = _bar_height(bar, tall, most)
            x = axis[number]
            if (lane.branch, number) == (model.branch, model.version):
                panel.rect(x - 1, base - tall - 2, slot, tall + 4, "wash", radius=2)
                panel.rect(x - 1, base + 2, slot, 2, "accent")
            label = text.ref_label(lane.branch, number)
            tip = label if bar is None else f"{label} · {_said(bar)}"
            panel.rect(x + 1, base - high, slot - 4, high, colour, radius=1, tip=tip)
            if slot >= 12 and sign:
                panel.text(x + (slot - 2) / 2, base - high - 3, sign, size=9, colour="soft",
                           anchor="middle")  # fmt: skip
        _draw_flags(panel, [(axis[tag.version], tag.name) for tag in flags], base - tall - 6, slot)
        for letter, place in marked.items():
            if place[0] == lane.branch and place[1] in axis:
                panel.text(axis[place[1]] + slot / 2 - 1, base + 14, letter, size=10, weight=600,
                           colour="accent", anchor="middle")  # fmt: skip
        panel.height = base + 6
    step = max(1, round(46 / slot))
    for number in sorted({*numbers[::step], model.version}):
        if number in axis and (number == model.version or abs(number - model.version) * slot > 24):
            is_here = number == model.version
            panel.text(axis[number] + slot / 2 - 1, panel.height + 12, str(number), size=10,
                       colour="accent" if is_here else "faint", anchor="middle",
                       weight=600 if is_here else 400)  # fmt: skip
    panel.height += 16
    _draw_operations(panel, model)
    branch_bars = [
        bar for lane in model.lanes for bar in lane.details if lane.branch == model.branch
    ]
    panel.words += [_said(bar) for bar in sorted(branch_bars, key=lambda bar: -bar.version)[:24]]
    panel.words += [f"tag {tag.name} at {text.ref_label(tag.branch, tag.version)}"
                    for tag in model.tags[:12]]  # fmt: skip
    return panel


def _branches(count: int) -> str:
    return f"{text.count(count)} branch{'' if count == 1 else 'es'}"


def _numbers(model: Timeline) -> list[int]:
    """Return the version numbers that have a place on the axis, ascending."""
    shown: set[int] = set()
    for lane in model.lanes:
        for first, length in lane.runs:
            shown.update(range(max(first, first + length - 4 * MAX_SLOTS), first + length))
            if first <= model.version < first + length:
                low, high = model.version - MAX_SLOTS, model.version + MAX_SLOTS
                shown.update(range(max(first, low), min(first + length, high)))
    numbers = sorted(shown)
    end_slot = bisect_left(numbers, model.version) + MAX_SLOTS // 2
    stop = min(len(numbers), max(end_slot, MAX_SLOTS))
    return numbers[max(0, stop - MAX_SLOTS) : stop]


def _of_lane(lane: Lane, numbers: Sequence[int]) -> list[int]:
    return [
        number
        for number in numbers
        if any(first <= number < first + length for first, length in lane.runs)
    ]


def _look(bar: VersionBar | None) -> tuple[str, str]:
    if bar is None:
        return "unknown", ""
    return look_of_operation(bar.operation)


def look_of_operation(operation: str) -> tuple[str, str]:
    """Return the colour and the sign of an operation."""
    return _LOOKS.get(operation, ("upkeep", "•"))


def _changed(bar: VersionBar) -> int:
    return (bar.added or 0) + (bar.removed or 0)


def _bar_height(bar: VersionBar | None, tall: float, most: int) -> float:
    """Return the height of a bar; the square root keeps small changes visible."""
    room = tall - 14
    if bar is None or not _changed(bar):
        return 5
    return 5 + room * sqrt(_changed(bar) / max(1, most))


def _said(bar: VersionBar) -> str:
    counts = "".join(
        f" {sign}{text.count(value)}"
        for sign, value in (("+", bar.added), ("−", bar.removed))
        if value
    )
    message = f": {bar.message}" if bar.message else ""
    return f"version {bar.version}: {operation_title(bar.operation)}{counts}{message}"


def _draw_fork(
    panel: Panel,
    lane: Lane,
    axis: Mapping[int, float],
    tops: Mapping[str | None, float],
    base: float,
) -> None:
    """Draw the line from the version that a branch started at."""
    if lane.fork is None or lane.fork[1] not in axis or lane.fork[0] not in tops:
        return
    own = _of_lane(lane, sorted(axis))
    start, x = tops[lane.fork[0]], axis[lane.fork[1]] + 4
    end = axis[own[0]] if own else x + 10
    points = [(x, start + 4), (x, base - 3), (max(x, end), base - 3)]
    panel.curve(points, "fork", 1.2)


def _draw_flags(panel: Panel, flags: Sequence[tuple[float, str]], base: float, slot: float) -> None:
    """Draw the names of tags above their versions, as far as they do not overlap."""
    free = 0.0
    for x, name in sorted(flags):
        panel.line(x + slot / 2 - 1, base, x + slot / 2 - 1, base + 6, colour="flag")
        left = x + slot / 2 - 2
        if left < free or left > WIDTH - 30:
            continue
        room = min(120.0, WIDTH - left - MARGIN)
        panel.text(left, base - 1, name, size=10, colour="flag", width=room)
        free = left + min(room, width_of(name, 10)) + 8


def _draw_operations(panel: Panel, model: Timeline) -> None:
    """Draw what the colours of the bars mean."""
    operations = {bar.operation for lane in model.lanes for bar in lane.details}
    left, base = float(MARGIN), panel.height + 14
    for operation in sorted(operations):
        colour, sign = _LOOKS.get(operation, ("upkeep", "•"))
        panel.rect(left, base - 9, 9, 9, colour, radius=1)
        words = f"{sign} {OPERATION_TITLES.get(operation, operation)}".strip()
        panel.text(left + 13, base, words, size=11, colour="soft")
        left += 30 + width_of(words, 11)
    panel.height += 20


def draw_version(detail: VersionDetail) -> Panel:
    """Draw a version in detail: what made it, its counts, its columns."""
    panel = Panel(f"Version {detail.label}")
    panel.heading(f"{operation_title(detail.operation)} · {detail.time}")
    if detail.message:
        panel.paragraph(detail.message, lines=2)
    if detail.description:
        panel.paragraph(detail.description, colour="faint", lines=2)
    draw_terms(panel, [(entry.label, entry.value) for entry in detail.counts])
    return panel


def draw_schema(detail: VersionDetail) -> Panel:
    """Draw the columns of a version, nested fields indented."""
    panel = Panel("Columns")
    tree = detail.schema
    top = [line for line in tree.lines if not line.depth]
    panel.heading(text.plural(len(top), "column"))
    rows = [(f"{'  ' * 2 * line.depth}{line.name}", line.type, "yes" if line.nullable else "no",
             line.note) for line in tree.lines[:60]]  # fmt: skip
    left = tree.hidden + max(0, len(tree.lines) - 60)
    draw_table(panel, ("name", "type", "null", "note"), rows,
               note=f"{text.count(left)} more" if left else "")  # fmt: skip
    return panel


def draw_header(session: Session, _shown: Shown) -> list[Panel]:
    """Draw name, version and figures."""
    card = session.parts.get("card")
    if isinstance(card, ErrorCard):
        return [draw_error(card)]
    return [draw_card(card)] if isinstance(card, DatasetCard) else []


def draw_versions(session: Session, shown: Shown) -> list[Panel]:
    """Draw the timeline; ``a`` and ``b`` of a comparison are marked on it."""
    model = session.parts.get("timeline")
    if isinstance(model, ErrorCard):
        return [draw_error(model, "Versions")]
    if not isinstance(model, Timeline):
        return []
    marks = {end.upper(): place_of(shown[end]) for end in "ab" if isinstance(shown.get(end), dict)}
    return [draw_timeline(session.keep(RecentAnswers).described(model), marks)]


def draw_detail(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the version shown in detail."""
    detail = session.parts.get("detail")
    return [draw_version(detail)] if isinstance(detail, VersionDetail) else []


def draw_columns(session: Session, _shown: Shown) -> list[Panel]:
    """Draw the schema."""
    detail = session.parts.get("detail")
    return [draw_schema(detail)] if isinstance(detail, VersionDetail) else []


def draw_facts(facts: ValueFacts) -> Panel:
    """Draw a single value: its heading, lines of prose, and labels with their values."""
    panel = Panel(facts.heading)
    panel.heading()
    for line in facts.lines:
        panel.paragraph(line, lines=2)
    hidden = max(0, len(facts.rows) - MAX_LINES)
    note = f"{text.count(hidden)} more" if hidden else ""
    draw_table(panel, ("", ""), facts.rows, note=note)
    return panel


HEADER = View("", draw_header)
VERSIONS = View("changes", draw_versions)
DETAIL = View("", draw_detail)
COLUMNS = View("", draw_columns)
