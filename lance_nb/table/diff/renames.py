"""Which fields were renamed between two versions, followed version by version.

Field ids alone do not tell: after a column was dropped and its files were compacted away, its id is
given to another one. So the schemas of the versions that changed them are read in their order. A
version that was restored brings its names back.

Limits: versions that are gone end the trace, and fields are then known by their names.
Source: operations Project, Merge, Overwrite and Restore of lance.table.
"""

from __future__ import annotations

from lance_nb.errors import NotFoundError
from lance_nb.format.rewrite_groups import restored_version
from lance_nb.format.schema import Schema
from lance_nb.table.diff.ends import Ends, ancestor_of
from lance_nb.table.diff.origins import read_transaction
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

# Column path in a version -> the path that it had in the common ancestor.
Names = dict[str, str]
_CHANGE_SCHEMA = ("Project", "Merge", "Overwrite", "Restore")


def find_renames(ends: Ends) -> dict[str, str]:
    """Return the old path of each field of ``b`` that has another one in ``a``."""
    a, b = set(_paths(ends.a.manifest.schema)), set(_paths(ends.b.manifest.schema))
    if not (a - b and b - a):
        return {}
    try:
        ancestor = ancestor_of(ends)
        if ancestor is None:
            return {}
        old = {start: path for path, start in _followed(ends, "a", ancestor).items()}
        new = _followed(ends, "b", ancestor)
    except NotFoundError:
        return {}
    found = {path: old[start] for path, start in new.items() if start in old}
    return {path: was for path, was in found.items() if path not in a and was not in b}


def _paths(schema: Schema) -> dict[str, int]:
    """Return the path of every field, with its id."""
    return {schema.path_of(one.id) or one.name: one.id for one in schema.walk()}


def _followed(ends: Ends, side: str, ancestor: Snapshot) -> Names:
    """Follow the fields from the ancestor to one side."""
    known = _paths(ancestor.manifest.schema)
    names: Names = {path: path for path in known}
    at_version: dict[int, Names] = {ancestor.version: names}
    for stretch in ends.between:
        if stretch.side != side:
            continue
        log = ends.source.log(stretch.branch)
        for version in range(stretch.after + 1, stretch.upto + 1):
            done = log.transaction(version)
            if done is not None and done.operation in _CHANGE_SCHEMA:
                snapshot = ends.source.load(Target(stretch.branch, version))
                after = _paths(snapshot.manifest.schema)
                if done.operation == "Overwrite":
                    names = {}
                elif done.operation == "Restore":
                    names = at_version.get(_restored(snapshot), {path: path for path in after})
                else:
                    names = _next(known, after, names)
                known = after
            at_version[version] = names
    return names


def _next(before: dict[str, int], after: dict[str, int], names: Names) -> Names:
    by_id = {number: path for path, number in before.items()}
    moved = {path: by_id[number] for path, number in after.items() if number in by_id}
    return {path: names[was] for path, was in moved.items() if was in names}


def _restored(snapshot: Snapshot) -> int:
    data = read_transaction(snapshot)
    found = None if data is None else restored_version(data, snapshot.manifest.path)
    return -1 if found is None else found
