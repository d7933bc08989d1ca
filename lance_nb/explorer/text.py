"""Text that is safe to show: bounded, every invisible or direction-changing character visible.

How hidden characters are shown: see ``lance_nb.shown_text``. Nothing here makes markup safe: every
view sets text as text, and ``pictures`` escapes for HTML on top.

Limits: ``NAME_CHARS`` for names, ``LINE_CHARS`` for one line of prose, ``CELL_BYTES`` for a cell.
"""

from __future__ import annotations

from datetime import UTC, datetime

from lance_nb.shown_text import visible

NAME_CHARS = 120
LINE_CHARS = 600
CELL_BYTES = 4096
ELLIPSIS = "…"

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def cut(text: str, limit: int) -> str:
    """Shorten to ``limit`` characters, the last of them an ellipsis when something was left out."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def name(value: object) -> str:
    """Make a name (column, tag, branch, dataset) fit to show."""
    return cut(visible(cut(str(value), NAME_CHARS)), NAME_CHARS * 2)


def line(value: object, limit: int = LINE_CHARS) -> str:
    """One line of prose (message, description, path) fit to show."""
    return cut(visible(cut(str(value), limit)), limit * 2)


def count(value: int) -> str:
    """``1,204``."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """``1 row``, ``1,204 rows``."""
    return f"{count(value)} {noun}" + ("" if value == 1 else "s")


def size(size_bytes: int) -> str:
    """``406 B``, ``3.4 MB`` (powers of 1,000, three digits)."""
    value = float(size_bytes)
    unit = 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    digits = 0 if unit == 0 or value >= 99.5 else 1
    return f"{value:.{digits}f} {_UNITS[unit]}"


def share(part: int, whole: int) -> str:
    """``2.1 %``; ``0 %`` of nothing; never ``0 %`` for something small."""
    if part <= 0 or whole <= 0:
        return "0 %"
    percent = 100 * part / whole
    return "< 0.1 %" if percent < 0.1 else f"{percent:.1f} %"


def moment(value: datetime | None) -> str:
    """``2026-11-21 02:50:11 UTC``, or ``time unknown``."""
    if value is None:
        return "time unknown"
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def milliseconds(value: datetime | None) -> int | None:
    """Milliseconds since 1970, as a browser wants them."""
    return None if value is None else int(value.timestamp() * 1000)


def ref_label(branch: str | None, version: int) -> str:
    """``main:42``: versions of different branches share numbers, so the branch is always named."""
    return f"{name(branch or 'main')}:{version}"
