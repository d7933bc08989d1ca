"""Replay a history that pylance wrote: apply each of its transactions to the version before."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import zip_longest
from pathlib import Path

from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.index_metadata import IndexMetadata, parse_index_section
from lance_nb.format.layout import ManifestName, list_versions, manifest_path
from lance_nb.format.manifest import Manifest, parse_manifest
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import ApplyContext, BuildOptions, Built
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.rebase import with_reuse_index
from lance_nb.transactions.transaction import Transaction

Loaded = tuple[Manifest, tuple[IndexMetadata, ...]]

# What a history does not determine, or what is ours to decide.
IGNORED = {"timestamp_ns", "writer_version", "unknown"}


def load_history(folder: str | Path) -> dict[int, Loaded]:
    """Return every version of a dataset folder with its indices."""
    return {name.version: _loaded(Path(folder), name) for name in _names(Path(folder))}


def load_newest(folder: str | Path) -> Loaded:
    """Return the newest version of a dataset folder with its indices."""
    return _loaded(Path(folder), _names(Path(folder))[-1])


def _names(root: Path) -> list[ManifestName]:
    return list_versions([one.name for one in (root / "_versions").iterdir()])


def _loaded(root: Path, name: ManifestName) -> Loaded:
    path = root / manifest_path(name.version, name.scheme)
    manifest = parse_manifest(path.read_bytes(), str(path))
    section = manifest.index_section
    return manifest, () if section is None else parse_index_section(section.data)


def transaction_of(manifest: Manifest) -> Transaction:
    return Transaction.from_bytes(manifest.transaction_section.data)


def rebuild(
    history: dict[int, Loaded],
    version: int,
    *,
    source: dict[int, Loaded] | None = None,
    **options: object,
) -> Built:
    """Return what we make of the transaction that led to ``version``; ``source``: of a clone."""
    manifest, _ = history[version]
    transaction = transaction_of(manifest)
    if isinstance(transaction.operation, Rewrite):  # its message does not hold everything
        operation = with_reuse_index(transaction.operation, version, history.__getitem__)
        transaction = replace(transaction, operation=operation)
    before = history.get(version - 1)
    ctx = ApplyContext(
        current=None if before is None else before[0],
        indices=() if before is None else before[1],
        load_version=(source or history).__getitem__,
        timestamp_ns=1,
        options=BuildOptions(**options),
    )
    return build(transaction, ctx)


def differences(ours: Built, theirs: Loaded) -> list[str]:
    """Return where the two versions differ, in words; empty if they are the same."""
    manifest, indices = theirs
    found = []
    for one in fields(Manifest):
        if not one.compare or one.name in IGNORED or one.name == "fragments":
            continue
        mine, other = getattr(ours.manifest, one.name), getattr(manifest, one.name)
        if one.name == "base_paths":  # in no order
            mine, other = (sorted(bases, key=lambda base: base.id) for bases in (mine, other))
        if one.name == "schema":
            found += _schema_differences(mine, other)
        elif mine != other:
            found.append(f"{one.name}: {mine!r} for {other!r}")
    mine = [_plain_fragment(one) for one in ours.manifest.fragments]
    other = [_plain_fragment(one) for one in manifest.fragments]
    if mine != other:
        found += _fragment_differences(mine, other)
    mine_indices, other_indices = map(_plain_indices, (ours.indices, indices))
    for uuid in sorted(mine_indices.keys() | other_indices.keys()):
        a, b = mine_indices.get(uuid), other_indices.get(uuid)
        if a != b:
            found.append(f"index {uuid}: {a} for {b}")
    return found


def _schema_differences(mine: Schema, other: Schema) -> list[str]:
    found = []
    if mine.metadata != other.metadata:
        found.append(f"schema metadata: {mine.metadata} for {other.metadata}")
    for a, b in zip_longest(mine.walk(), other.walk()):
        if a != b:
            found.append(f"field: {a!r} for {b!r}")
    return found


def _fragment_differences(mine: list[dict], other: list[dict]) -> list[str]:
    ids = [one["id"] for one in mine], [one["id"] for one in other]
    if ids[0] != ids[1]:
        return [f"fragment ids: {ids[0]} for {ids[1]}"]
    return [
        f"fragment {a['id']}, {key}: {a[key]!r} for {b[key]!r}"
        for a, b in zip(mine, other, strict=True)
        for key in a
        if a[key] != b[key]
    ]


def _plain_fragment(one: Fragment) -> dict:
    plain = {each.name: getattr(one, each.name) for each in fields(Fragment)}
    # pylance looks up sizes that a transaction leaves out.
    plain["files"] = [replace(file, file_size_bytes=None) for file in one.files]
    for name, kind in (
        ("row_id_meta", RowIdSegments),
        ("created_at_version_meta", RowVersionSequence),
        ("last_updated_at_version_meta", RowVersionSequence),
    ):
        found = plain[name]
        if found is not None and isinstance(found.sequence, InlineSequence):
            plain[name] = kind.from_bytes(found.sequence.data).to_numpy().tolist()
    return plain


def _plain_indices(indices: tuple[IndexMetadata, ...]) -> dict[str, tuple]:
    plain = {}
    for one in indices:
        covered = one.fragment_ids()
        covered = None if covered is None else sorted(covered)
        plain[one.uuid] = one.name, covered, replace(one, fragment_bitmap=b"")
    return plain


__all__ = ["Transaction", "differences", "load_history", "rebuild", "transaction_of"]
