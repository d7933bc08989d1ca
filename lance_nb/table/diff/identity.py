"""By what rows of two versions are known to be the same row, and why: said to the user as it is.

In this order: the key that the caller names; stable row ids, when both versions have them; the
unenforced primary key of both; else the row's address, its place in a file. By address a row that
was rewritten elsewhere counts as removed and added, but compactions between the versions are
followed through their transactions.

``key="_rowaddr"`` and ``key="_rowid"`` choose one of the others on purpose.
Source: spec page "row id and row address".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.schema import primary_key
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.snapshot import Snapshot

BY_ROW_ID, BY_ADDRESS = "stable row id", "row address"


@dataclass(frozen=True, slots=True)
class Identity:
    """How rows are matched: ``label`` and ``reason`` are for people; ``key`` are columns."""

    label: str
    reason: str
    key: tuple[str, ...] = ()

    @property
    def is_row_id(self) -> bool:
        """Whether rows are matched by stable row ids."""
        return self.label == BY_ROW_ID


def choose_identity(a: Snapshot, b: Snapshot, key: Sequence[str] | str | None) -> Identity:
    """Choose. Raises ColumnNotFoundError, InvalidInputError for a key that cannot serve."""
    ids = [has_row_ids(one) for one in (a, b)]
    if key is not None:
        return _asked_for([key] if isinstance(key, str) else list(key), a, b, all(ids))
    if all(ids):
        return Identity(BY_ROW_ID, "both versions have stable row ids")
    primary = primary_key(b.manifest.schema)
    if primary and primary == primary_key(a.manifest.schema):
        return _key(primary, "the unenforced primary key of the table")
    which = "neither version has" if not any(ids) else "only one of the versions has"
    return Identity(
        BY_ADDRESS,
        f"{which} stable row ids and no key was given: a row that was rewritten counts as removed "
        "and added; compactions are followed",
    )


def _asked_for(names: list[str], a: Snapshot, b: Snapshot, both_ids: bool) -> Identity:
    if names == [ROW_ADDRESS]:
        return Identity(BY_ADDRESS, "asked for: a rewritten row counts as removed and added")
    if names == [ROW_ID]:
        if not both_ids:
            raise InvalidInputError(
                "rows cannot be matched by _rowid: both versions need stable row ids (a dataset "
                "written with enable_stable_row_ids=True); give key=[columns] instead"
            )
        return Identity(BY_ROW_ID, "asked for")
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"a key is one column or several different ones, not {names!r}")
    for snapshot in (a, b):
        for name in names:
            snapshot.manifest.schema.field(name)
    for name in names:
        if len(a.manifest.schema.resolve(name)) > 1 or len(b.manifest.schema.resolve(name)) > 1:
            raise InvalidInputError(f"key column {name!r} is nested; a key is of top-level columns")
    return _key(tuple(names), "the key that was given")


def _key(names: tuple[str, ...], reason: str) -> Identity:
    return Identity(f"key: {', '.join(names)}", reason, names)


def has_row_ids(snapshot: Snapshot) -> bool:
    """Tell whether row ids are stable in a version."""
    return bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
