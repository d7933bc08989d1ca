"""Check that the new data files of a ``LanceOperation.Merge`` have the columns of its schema.

Fragments get their new columns one by one, in other processes too, and each by a call of its own. A
data file says field ids in its manifest entry and names and types in itself: a function that named
the column otherwise, or made another type, for one of the fragments shows here and nowhere else.
Committed, values of two columns would be mixed, or a fragment could not be read.

Where pylance and we differ: it commits such fragments.
Limits: files of 0.1 do not describe themselves. Of extension types and dictionaries only the names
are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lance_nb.errors import SchemaMismatchError
from lance_nb.file.reader import FileReader
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.threads import run_all
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.merge import Merge

_DICTIONARY = "dict:"


def check_merged_files(current: Snapshot, operation: Merge) -> None:
    """Raise SchemaMismatchError for a new file that does not have the columns of the schema."""
    before = {file.path for one in current.manifest.fragments for file in one.files}
    added = [
        (fragment, file)
        for fragment in operation.fragments
        for file in fragment.files
        if file.path not in before and not file.is_legacy
    ]
    schema = operation.schema.tree
    run_all([partial(_check, current, fragment, file, schema) for fragment, file in added])


def _check(current: Snapshot, fragment: Fragment, file: DataFile, schema: Schema) -> None:
    store, path = current.locations.locate(file.location(), file.base_id)
    reader = current.files.get(store, path, file.file_size_bytes or 0)
    if not isinstance(reader, FileReader):
        return
    wanted = schema.project_by_ids(file.fields)
    problem = next(_differences(wanted.fields, reader.schema.fields, ""), None)
    if problem is not None:
        raise SchemaMismatchError(
            f"fragment {fragment.id}: {problem} in its new file {file.path!r}; add the same "
            "columns to every fragment, and commit the schema that this returned"
        )


def _differences(wanted: Sequence[Field], found: Sequence[Field], above: str) -> Iterator[str]:
    by_name = {one.name: one for one in found}
    for field in wanted:
        path = above + field.name
        other = by_name.get(field.name)
        if other is None:
            names = ", ".join(repr(above + one.name) for one in found) or "none"
            yield f"column {path!r} of the schema is not among the columns ({names})"
        elif _is_compared(field, other) and field.logical_type != other.logical_type:
            yield f"column {path!r} is {field.logical_type} in the schema, {other.logical_type}"
        elif field.children and other.children:
            yield from _differences(field.children, other.children, f"{path}.")


def _is_compared(field: Field, other: Field) -> bool:
    return not any(
        one.extension_name or one.logical_type.startswith(_DICTIONARY) or one.metadata
        for one in (field, other)
    )
