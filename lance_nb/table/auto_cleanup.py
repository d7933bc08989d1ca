"""Cleaning up by itself: when a dataset's configuration asks for it after a commit, and how.

Layout: the configuration keys ``lance.auto_cleanup.interval`` (every so many versions; 0: always),
``.older_than`` (a span such as "14days" or "1h 30m") and ``.retain_versions``. The interval and one
of the others must be there.

Limits: a version whose number is a multiple of the interval cleans up, whoever commits it. Spans
are written as the Rust crate humantime writes them; a month is 30.44 days, a year 365.25.
Source: ``auto_cleanup_options``, ``optimize.enable_auto_cleanup`` of pylance 14.0.2, measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from lance_nb.errors import CleanupError, InvalidInputError
from lance_nb.table.retention import DEFAULT_AGE, RetentionPolicy

INTERVAL = "lance.auto_cleanup.interval"
OLDER_THAN = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS = "lance.auto_cleanup.retain_versions"

DEFAULT_INTERVAL = 20
_OPTIONS = frozenset({"interval", "older_than_seconds"})
_DAY = 86_400.0
_SECONDS = {
    **dict.fromkeys(("nanos", "nsec", "ns"), 1e-9),
    **dict.fromkeys(("usec", "us"), 1e-6),
    **dict.fromkeys(("millis", "msec", "ms"), 1e-3),
    **dict.fromkeys(("seconds", "second", "secs", "sec", "s"), 1.0),
    **dict.fromkeys(("minutes", "minute", "mins", "min", "m"), 60.0),
    **dict.fromkeys(("hours", "hour", "hrs", "hr", "h"), 3600.0),
    **dict.fromkeys(("days", "day", "d"), _DAY),
    **dict.fromkeys(("weeks", "week", "w"), 7 * _DAY),
    **dict.fromkeys(("months", "month", "M"), 30.44 * _DAY),
    **dict.fromkeys(("years", "year", "y"), 365.25 * _DAY),
}
_PART = re.compile(r"\s*([0-9]{1,15})\s*([A-Za-z]{1,7})\s*")


def policy_after(version: int, config: Mapping[str, str]) -> RetentionPolicy | None:
    """Return the rules to clean up by after this version was committed; None: not now.

    Raises CleanupError for values without meaning.
    """
    older_than, retain = config.get(OLDER_THAN), config.get(RETAIN_VERSIONS)
    if INTERVAL not in config or (older_than is None and retain is None):
        return None
    interval = _number(INTERVAL, config[INTERVAL])
    if interval and version % interval:
        return None
    return RetentionPolicy.of(
        None if older_than is None else span(older_than),
        None if retain is None else _number(RETAIN_VERSIONS, retain),
        None,
    )


def span(text: str) -> timedelta:
    """Return the span that a text such as "1h 30m" says. Raises CleanupError."""
    position, seconds = 0, 0.0
    while position < len(text):
        part = _PART.match(text, position)
        unit = None if part is None else _SECONDS.get(part[2])
        if part is None or unit is None:
            break
        seconds, position = seconds + int(part[1]) * unit, part.end()
    if not text or position < len(text):
        raise CleanupError(
            f"{OLDER_THAN} is {text!r}: a span is numbers with units, for example '14days' or "
            "'1h 30m'"
        )
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def settings(options: Mapping[str, object]) -> dict[str, str]:
    """Return the configuration for ``auto_cleanup_options``; what they do not say is the default.

    Unlike pylance, which takes the default for what it cannot use. Raises InvalidInputError.
    """
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise InvalidInputError(f"auto_cleanup_options has no {unknown[0]!r}: it takes "
                                f"{', '.join(sorted(_OPTIONS))}")  # fmt: skip
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInputError(f"auto_cleanup_options: {name} is a number, not {value!r}")
    age = options.get("older_than_seconds")
    return {
        INTERVAL: str(options.get("interval", DEFAULT_INTERVAL)),
        OLDER_THAN: f"{DEFAULT_AGE.days}days" if age is None else f"{age}s",
    }


def _number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(2**63))):
        raise CleanupError(f"{key} is {text!r}, which is not a number")
    return int(text)
