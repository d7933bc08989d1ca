"""Name the odd states that old releases of pylance left in a version, and what becomes of them.

They are read as pylance 14.0.2 reads them, so they are no damage; but ``validate`` of pylance
refuses most of them, some cannot be changed, and the next version repairs the others
(transactions/old_manifests.py).

Limits: of a manifest that names no writer, every data file is opened to compare its row counts.
Source: datasets of releases 0.3 to 4.0 (tests/golden/old_states.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lance_nb.format.fragment import Fragment
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.indices import read_indices
from lance_nb.table.scan_plan import num_live_rows
from lance_nb.table.snapshot import Snapshot

REWRITE = "write_dataset(ds, ds.uri, mode='overwrite') rewrites the dataset"


def fragment_states(snapshot: Snapshot) -> Iterator[str]:
    """Yield what old releases left in the fragments, in words. Raises as reading them does."""
    fragments = snapshot.manifest.fragments
    repeated = fragments.repeated_id()
    ids = fragments.counts().ids
    if repeated is not None:
        yield (
            f"two fragments have the id {repeated}, as commits of releases up to 0.16 left it: "
            f"they are read in the order of the manifest and cannot be changed; {REWRITE}"
        )
    elif (ids[1:] < ids[:-1]).any():
        at = int((ids[1:] < ids[:-1]).argmax())
        yield (
            f"fragment {ids[at + 1]} stands behind fragment {ids[at]}, as compactions of releases "
            "up to 0.8 left it: the next version sorts them"
        )
    if not fragments.has_counts:
        yield from _wrong_counts(snapshot)
    yield from _file_states(snapshot)


def _wrong_counts(snapshot: Snapshot) -> Iterator[str]:
    fragments = snapshot.manifest.fragments
    for raw, fragment in zip(fragments.raw, fragments, strict=True):
        said = Fragment.from_bytes(raw, snapshot.manifest.path)
        rows = confirmed_rows(snapshot, fragment)
        deleted = rows - num_live_rows(snapshot, fragment)
        is_wrong = said.physical_rows not in (0, rows)
        if is_wrong or said.num_deleted_rows not in (0, deleted):
            yield (
                f"the manifest counts {said.physical_rows} rows and {said.num_deleted_rows} "
                f"deleted ones in fragment {fragment.id}, which has {rows} and {deleted}, as "
                "release 0.8.0 left it: rows are counted in the files, and the next version "
                "records them"
            )
            return


def _file_states(snapshot: Snapshot) -> Iterator[str]:
    known = {one.id for one in snapshot.manifest.schema.walk()}
    kinds: set[bool] = set()
    unused = ""
    for fragment in snapshot.manifest.fragments:
        kinds.update(file.is_legacy for file in fragment.files)
        for file in fragment.files:
            if not unused and all(field >= 0 and field not in known for field in file.fields):
                unused = f"data file {file.path!r} of fragment {fragment.id}"
    if len(kinds) > 1:
        yield (
            "there are data files of version 0.1 and of later ones, as releases 0.12 to 0.16 mixed "
            f"them: pylance refuses or misreads such a version; {REWRITE}"
        )
    if unused:
        yield (
            f"{unused} holds no column of the schema, as releases up to 0.10 left the files of "
            "dropped columns: it is not read"
        )


def index_states(snapshot: Snapshot) -> Iterator[str]:
    """Yield what old releases left in the indices, in words. Raises CorruptFileError."""
    path = snapshot.manifest.path
    covered: dict[str, Counter[int]] = {}
    for index in read_indices(snapshot):
        if index.is_system:
            continue
        fragments = index.fragment_ids(path)
        if fragments is None:
            yield (
                f"index {index.name!r} does not say which fragments it covers, as releases up to "
                "0.7 left it: build it again"
            )
        else:
            covered.setdefault(index.name, Counter()).update(fragments)
    for name, counts in covered.items():
        twice = [one for one, count in counts.items() if count > 1]
        if twice:
            yield (
                f"two segments of index {name!r} cover fragment {min(twice)}, as optimize_indices "
                "of releases up to 0.21 left it: the next commit of pylance corrects it"
            )
