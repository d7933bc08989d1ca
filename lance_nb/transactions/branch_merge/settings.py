"""Key-value maps changed on two sides: config, metadata of table, schema and fields.

Each key is merged by itself: who changed it wins; both to the same value is no conflict.

Source: messages Manifest and Field of lance.table and lance.file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from lance_nb.transactions.branch_merge.findings import SETTINGS, THEIRS, Findings

V = TypeVar("V")


def merge_maps(
    base: Mapping[str, V],
    source: Mapping[str, V],
    target: Mapping[str, V],
    what: str,
    findings: Findings,
) -> dict[str, V]:
    """Return the target's map with the source's changes; ``what`` names the map for people."""
    merged = dict(target)
    changed = [key for key in {**base, **source} if base.get(key) != source.get(key)]
    for key in changed:
        value = source.get(key)
        if target.get(key) == value:
            continue
        if target.get(key) != base.get(key):
            text = (
                f"{what} {key!r} is {_shown(value)} on the source, {_shown(target.get(key))} here"
            )
            if findings.report(SETTINGS, text, keys=(key,)) != THEIRS:
                continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")
