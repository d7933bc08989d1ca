"""Where the bytes of a dataset's folder are: by state, by kind, by ref, and by version.

Layout of ``to_json``: ``total``, ``files``, ``states`` ``[{name, bytes, title}]``, ``kinds``
``[{name, files, bytes, orphans}]``, ``refs`` ``[{kind, name, place, held, own}]`` and ``versions``
``[{place, branch, version, held, own}]`` with those that hold most by themselves first, ``damaged``
(texts), ``hidden_refs``, ``hidden_versions``.

Limits: ``MAX_REFS`` refs, ``MAX_VERSIONS`` versions, ``MAX_DAMAGED`` texts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lance_nb.explorer.models import text
from lance_nb.table.space import Space

MAX_REFS = 40
MAX_VERSIONS = 12
MAX_DAMAGED = 10

_STATES = (
    ("current", "what the newest version of a branch refers to"),
    ("old", "what only older versions refer to: a clean-up can free it"),
    ("orphan", "what no version refers to: left behind by writers that did not finish"),
    ("bookkeeping", "manifests, transactions, refs and hints"),
    ("other", "files that are no part of the dataset"),
)


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """The bytes of a dataset, bounded for showing."""

    total: int
    files: int
    states: tuple[dict[str, Any], ...]
    kinds: tuple[dict[str, Any], ...]
    refs: tuple[dict[str, Any], ...]
    hidden_refs: int
    versions: tuple[dict[str, Any], ...]
    hidden_versions: int
    damaged: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the account as JSON-able values."""
        return asdict(self)


def space_use(space: Space) -> SpaceUse:
    """Cut an account to what is shown."""
    return SpaceUse(
        total=space.total_bytes,
        files=space.num_files,
        states=tuple(
            {"name": name, "bytes": getattr(space, f"{name}_bytes"), "title": title}
            for name, title in _STATES
        ),
        kinds=tuple(
            {
                "name": row["kind"].replace("_", " "),
                "files": row["num_files"],
                "bytes": row["size_bytes"],
                "orphans": row["orphan_bytes"],
            }
            for row in space.kinds.to_pylist()
            if row["num_files"]
        ),
        refs=tuple(
            {"kind": row["kind"], "name": text.name(row["name"]), **_place(row)}
            for row in _largest(space.refs, MAX_REFS)
        ),
        hidden_refs=max(0, space.refs.num_rows - MAX_REFS),
        versions=tuple(_place(row) for row in _largest(space.versions, MAX_VERSIONS)),
        hidden_versions=max(0, space.versions.num_rows - MAX_VERSIONS),
        damaged=tuple(text.line(one) for one in space.damaged[:MAX_DAMAGED]),
    )


def _largest(table: pa.Table, limit: int) -> list[dict[str, Any]]:
    """Return the rows that hold most by themselves."""
    order = [("exclusive_bytes", "descending"), ("version", "descending")]
    rows: list[dict[str, Any]] = table.sort_by(order).slice(0, limit).to_pylist()
    return rows


def _place(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "place": text.ref_label(row["branch"], row["version"]),
        "branch": row["branch"],
        "version": row["version"],
        "held": row["referenced_bytes"],
        "own": row["exclusive_bytes"],
    }
