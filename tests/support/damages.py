"""A dataset with a bit of everything, and every kind of damage that can be planted in it.

A damage is a function of the dataset's files and the code of the finding it must end in.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import lance_nb
from lance_nb._pb import rowids, table, transaction
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileWriter
from lance_nb.format.checksums import FileSum
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.layout import HINT_PATH, branch_path, manifest_path, tag_path
from lance_nb.format.manifest import (
    build_manifest_file,
    message_bytes,
    message_position,
    read_section,
)
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.session.session import open_session
from lance_nb.storage.base import Store
from lance_nb.transactions.checksum_records import write_record
from lance_nb.transactions.operations.create_index import CreateIndex

NEWEST = 7
DELETED_IN = 3
INDEXED_IN = 4
ROWS = 10
Files = dict[str, bytes]


class Damaged:
    """The files of a dataset, and ways to change them behind the library's back."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.root: Store = open_session(uri).root

    # --- files ------------------------------------------------------------------------------------

    def take(self) -> Files:
        """Return all files."""
        listing = self.root.list_recursive("")
        return {one.name: bytes(self.root.read(one.name)) for one in listing}

    def put(self, files: Files) -> None:
        """Make these the files."""
        for one in self.root.list_recursive(""):
            if one.name not in files:
                self.root.delete(one.name)
        for name, data in files.items():
            self.root.write(name, data)

    def names(self, folder: str) -> list[str]:
        """List a folder, as paths."""
        return sorted(f"{folder}/{one}" for one in self.root.list_names(folder))

    def path(self, folder: str, at: int = 0, suffix: str = "") -> str:
        """Return the path of one file of a folder, at any depth."""
        found = [f"{folder}/{one.name}" for one in self.root.list_recursive(folder)]
        return sorted(one for one in found if one.endswith(suffix))[at]

    def change(self, path: str, edit: Callable[[bytes], bytes]) -> None:
        """Write other bytes."""
        self.root.write(path, edit(bytes(self.root.read(path))))

    def change_json(self, path: str, **values: Any) -> None:
        """Change keys of a record."""
        self.change(path, lambda data: json.dumps(json.loads(data) | values).encode())

    # --- manifests --------------------------------------------------------------------------------

    def edit(
        self,
        change: Callable[[table.Manifest, table.IndexSection], object],
        *versions: int,
        home: str = "",
        inline: Callable[[bytes], bytes | None] = lambda data: data,
    ) -> None:
        """Change the messages of some versions, the newest by default."""
        for version in versions or (NEWEST,):
            path = f"{home}{manifest_path(version)}"
            self.change(path, lambda data: edited_manifest_file(data, change, inline))

    def fragments(self, version: int = NEWEST) -> list[table.DataFragment]:
        """Return the fragments of a version."""
        found: list[table.DataFragment] = []
        self.edit(lambda one, _: found.extend(fragments_of(one)), version)
        return found


def edited_manifest_file(
    data: bytes,
    change: Callable[[table.Manifest, table.IndexSection], object],
    inline: Callable[[bytes], bytes | None],
) -> bytes:
    """Return a manifest file with its messages changed, its sections and footer built anew."""
    view = memoryview(data)
    position = message_position(view, len(view), "")
    message = table.Manifest.FromString(bytes(message_bytes(view, len(view), position, "")))

    def section(name: str) -> bytes | None:
        offset = getattr(message, name) if message.HasField(name) else None
        found = read_section(view, len(view), offset, position, "")
        return None if found is None else found.data

    indices = table.IndexSection.FromString(section("index_section") or b"")
    transactions = inline(section("transaction_section") or b"")
    change(message, indices)
    sections = []
    message.ClearField("index_section")
    if indices.indices:
        message.index_section = 0
        sections.append(indices.SerializeToString())
    message.ClearField("transaction_section")
    if transactions is not None:
        message.transaction_section = sum(4 + len(one) for one in sections)
        sections.append(transactions)
    return build_manifest_file(sections, [message.SerializeToString()])


def fragments_of(message: table.Manifest) -> list[table.DataFragment]:
    """Decode the fragments, which the message holds as bytes."""
    return [table.DataFragment.FromString(one) for one in message.fragments]


def put_fragments(message: table.Manifest, fragments: list[table.DataFragment]) -> None:
    """Replace the fragments."""
    del message.fragments[:]
    message.fragments.extend([one.SerializeToString() for one in fragments])


# --- the dataset ----------------------------------------------------------------------------------


def build(uri: str, *, stable_row_ids: bool) -> Damaged:
    """Write seven versions: rows, more rows, deletions, two indices, config; a tag, a branch."""
    rows = [
        pa.table(
            {"id": np.arange(start, start + ROWS), "s": [f"text {i}" for i in range(ROWS)]},
            schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())]),
        )
        for start in (0, ROWS, 2 * ROWS)
    ]
    dataset = lance_nb.write_dataset(rows[0], uri, enable_stable_row_ids=stable_row_ids)
    dataset.insert(rows[1])
    dataset.delete("id in (3, 4)")
    dataset.create_scalar_index("id", "BTREE", name="id_idx")
    dataset._change(CreateIndex((_bitmap_index(uri, dataset, stable_row_ids),)))
    dataset.insert(rows[2])
    dataset.update_config({"key": "value"})
    assert dataset.version == NEWEST
    dataset.tags.create("kept", 2)
    dataset.create_branch("dev", DELETED_IN).insert(rows[2])
    return Damaged(uri)


def _bitmap_index(uri: str, dataset: lance_nb.LanceDataset, by_id: bool) -> IndexMetadata:
    """Write a bitmap index on ``s`` over fragments 0 and 1, as pylance lays it out."""
    address = "_rowid" if by_id else "_rowaddr"
    found = dataset.to_table(["s"], with_row_id=True, with_row_address=True)
    rows = [(one["s"], one[address]) for one in found.to_pylist()]
    keys = sorted({key for key, _ in rows})
    sets = [row_set([row for key, row in rows if key == one]) for one in keys]
    identity = str(uuid4())
    table_ = pa.table({"keys": keys, "bitmaps": pa.array(sets, pa.binary())})
    size = write_index_file(uri, identity, "bitmap_page_lookup.lance", table_)
    return IndexMetadata(
        identity,
        "s_idx",
        (dataset.lance_schema.field("s").id(),),
        dataset.version,
        BitMap([0, 1]).serialize(),
        "/lance.table.BitmapIndexDetails",
        index_version=0,
        files=(IndexFile("bitmap_page_lookup.lance", size),),
    )


def row_set(rows: list[int]) -> bytes:
    """Serialize a set of rows as bitmap indices do."""
    keys = sorted({row >> 32 for row in rows})
    out = struct.pack("<I", len(keys))
    for key in keys:
        data = BitMap([row & 0xFFFFFFFF for row in rows if row >> 32 == key]).serialize()
        out += struct.pack("<II", key, len(data)) + data
    return out


def write_index_file(uri: str, identity: str, name: str, rows: pa.Table) -> int:
    """Write one file of an index; return its size."""
    root = open_session(uri).root
    schema = Schema.from_arrow(rows.schema)
    path = f"_indices/{identity}/{name}"
    with FileWriter(root, path, schema, file_version=file_version_of("2.2")) as file:
        for batch in rows.to_batches():
            file.write(batch)
        return file.finish().size_bytes


# --- what is changed ------------------------------------------------------------------------------

Plant = Callable[[Damaged], object]


def _cut(path: str, share: float) -> Plant:
    return lambda world: world.change(path, lambda data: data[: int(len(data) * share)])


def _newest(change: Callable[[table.Manifest], object]) -> Plant:
    return lambda world: world.edit(lambda message, _: change(message))


def _one_fragment(
    change: Callable[[table.DataFragment], object], at: int = 0, *versions: int
) -> Plant:
    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        fragments = fragments_of(message)
        if at < len(fragments):
            change(fragments[at])
        put_fragments(message, fragments)

    return lambda world: world.edit(edit, *versions)


def _everywhere(change: Callable[[table.DataFragment], object], at: int = 0) -> Plant:
    """Change a fragment in all versions that have it, so that no two of them differ."""
    return _one_fragment(change, at, *range(1, NEWEST + 1))


def _index(change: Callable[[Any], object], name: str = "id_idx") -> Plant:
    def edit(_: table.Manifest, section: table.IndexSection) -> None:
        for one in section.indices:
            if one.name == name:
                change(one)

    return lambda world: world.edit(edit)


def _set(message: Any, **values: Any) -> None:
    for name, value in values.items():
        setattr(message, name, value)


def _repeat_fragment(message: table.Manifest) -> None:
    put_fragments(message, [*fragments_of(message), fragments_of(message)[1]])


def _turn_fragments(message: table.Manifest) -> None:
    put_fragments(message, fragments_of(message)[::-1])


def _drop_fragment(message: table.Manifest) -> None:
    put_fragments(message, fragments_of(message)[1:])


def _fields(fields: list[int], *columns: int) -> Callable[[table.DataFragment], None]:
    def change(fragment: table.DataFragment) -> None:
        file = fragment.files[0]
        del file.fields[:]
        file.fields.extend(fields)
        if columns:
            del file.column_indices[:]
            file.column_indices.extend(columns)

    return change


def _fields_twice(fragment: table.DataFragment) -> None:
    fragment.files.add().CopyFrom(fragment.files[0])


def _in_base(fragment: table.DataFragment) -> None:
    fragment.files[0].base_id = 7


def _other_base(world: Damaged) -> None:
    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        message.base_paths.add(id=7, path="/nowhere/else", is_dataset_root=True)
        fragments = fragments_of(message)
        _in_base(fragments[0])
        put_fragments(message, fragments)

    world.edit(edit)


def _empty_all(world: Damaged) -> None:
    """Leave no manifest of main that says anything."""
    for version in range(1, NEWEST + 1):
        world.root.write(manifest_path(version), b"")


def _moved_base(world: Damaged) -> None:
    """Let the newest version of branch dev name the root where it was before a move."""

    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        message.base_paths[0].path = "/former/place"

    world.edit(edit, DELETED_IN + 1, home="tree/dev/")


def _bases_twice(message: table.Manifest) -> None:
    for path in ("/one", "/two"):
        message.base_paths.add(id=7, path=path)


def _without_writer(message: table.Manifest) -> None:
    message.ClearField("writer_version")
    fragments = fragments_of(message)
    fragments[0].physical_rows = ROWS - 1
    put_fragments(message, fragments)


def _legacy_file(fragment: table.DataFragment) -> None:
    fragment.files[0].file_major_version = 0
    fragment.files[0].file_minor_version = 1


def _row_ids(ids: list[int]) -> Callable[[table.DataFragment], None]:
    data = RowIdSegments.from_numpy(np.array(ids, np.uint64)).to_bytes()
    return lambda fragment: _set(fragment, inline_row_ids=data)


def _range(start: int, end: int) -> Callable[[table.DataFragment], None]:
    message = rowids.RowIdSequence()
    segment = message.segments.add()
    segment.range.start, segment.range.end = start, end
    return lambda fragment: _set(fragment, inline_row_ids=message.SerializeToString())


def _future(fragment: table.DataFragment) -> None:
    versions = RowVersionSequence.from_numpy(np.full(ROWS, 99, np.uint64))
    fragment.inline_created_at_versions = versions.to_bytes()


def _next_row_id(message: table.Manifest) -> None:
    message.next_row_id = ROWS


def _first_version_again(world: Damaged) -> None:
    world.root.write(manifest_path(2), world.root.read(manifest_path(1)))


def _v1_name(world: Damaged) -> None:
    world.root.write("_versions/3.manifest", world.root.read(manifest_path(3)))


def _delete(folder: str, at: int = 0, suffix: str = "") -> Plant:
    return lambda world: world.root.delete(world.path(folder, at, suffix))


def _delete_all(folder: str) -> Plant:
    def plant(world: Damaged) -> None:
        for one in list(world.root.list_recursive(folder)):
            world.root.delete(f"{folder}/{one.name}")

    return plant


def _write(path: str, data: bytes) -> Plant:
    return lambda world: world.root.write(path, data)


def _overwrite(folder: str, start: int, data: bytes, at: int = 0, suffix: str = "") -> Plant:
    """Replace bytes of a file; a negative start counts from the end."""

    def plant(world: Damaged) -> None:
        def edit(old: bytes) -> bytes:
            begin = start if start >= 0 else len(old) + start
            return old[:begin] + data + old[begin + len(data) :]

        world.change(world.path(folder, at, suffix), edit)

    return plant


def _transaction_name(world: Damaged, version: int = NEWEST) -> str:
    names: list[str] = []
    world.edit(lambda message, _: names.append(message.transaction_file), version)
    return f"_transactions/{names[0]}"


def _without_transaction(world: Damaged) -> None:
    world.root.delete(_transaction_name(world))
    world.edit(lambda *_: None, inline=lambda _: None)


def _other_transaction(world: Damaged) -> None:
    other = bytes(world.root.read(_transaction_name(world, 2)))
    world.root.write(_transaction_name(world), other)


def _other_uuid(world: Damaged) -> None:
    def edit(data: bytes) -> bytes:
        message = transaction.Transaction.FromString(data)
        message.uuid = str(UUID(int=7))
        return message.SerializeToString()

    world.edit(lambda *_: None, inline=edit)


def _one_column(world: Damaged) -> None:
    """Write other rows into the data file: the first pages become nonsense."""
    _overwrite("data", 64, b"\xff" * 64)(world)


def _more_deletions(fragment: table.DataFragment) -> None:
    fragment.deletion_file.num_deleted_rows += 1


def _far_deletions(world: Damaged) -> None:
    path = world.path("_deletions")
    data = BitMap([3, 4000]).serialize()
    world.root.delete(path)
    world.root.write(path.replace(".arrow", ".bin"), data)
    _everywhere(_as_bitmap)(world)


def _as_bitmap(fragment: table.DataFragment) -> None:
    if fragment.HasField("deletion_file"):
        fragment.deletion_file.file_type = table.DeletionFile.BITMAP


def _index_rows(change: Callable[[np.ndarray], np.ndarray]) -> Plant:
    """Write the rows of the B-tree anew."""

    def plant(world: Damaged) -> None:
        identity = _index_uuid(world, "id_idx")
        reader = lance_nb.LanceFileReader(f"{world.uri}/_indices/{identity}/page_data.lance")
        rows = reader.read_all().to_table()
        ids = change(rows["ids"].to_numpy().copy())
        fields = pa.schema([rows.schema.field("values"), rows.schema.field("ids")])
        values = rows["values"].combine_chunks()
        values = pa.concat_arrays([values, values])[: len(ids)]
        made = pa.table([values, pa.array(ids)], schema=fields)
        _resize(world, "id_idx", write_index_file(world.uri, identity, "page_data.lance", made))

    return plant


def _bitmap_rows(change: Callable[[list[bytes]], list[bytes]]) -> Plant:
    def plant(world: Damaged) -> None:
        identity = _index_uuid(world, "s_idx")
        name = "bitmap_page_lookup.lance"
        reader = lance_nb.LanceFileReader(f"{world.uri}/_indices/{identity}/{name}")
        rows = reader.read_all().to_table()
        sets = pa.array(change(rows["bitmaps"].to_pylist()), pa.binary())
        made = pa.table({"keys": rows["keys"], "bitmaps": sets})
        _resize(world, "s_idx", write_index_file(world.uri, identity, name, made))

    return plant


def _resize(world: Damaged, name: str, size: int) -> None:
    """Note the size of a file that was written anew, in every version."""

    def edit(_: table.Manifest, section: table.IndexSection) -> None:
        for one in section.indices:
            for file in one.files:
                if one.name == name and file.path != "page_lookup.lance":
                    file.size_bytes = size

    world.edit(edit, *range(INDEXED_IN, NEWEST + 1))


def _index_uuid(world: Damaged, name: str) -> str:
    found: list[str] = []

    def look(_: table.Manifest, section: table.IndexSection) -> None:
        found.extend(str(UUID(bytes=one.uuid.uuid)) for one in section.indices if one.name == name)

    world.edit(look)
    return found[0]


def _same_uuids(world: Damaged) -> None:
    def edit(_: table.Manifest, section: table.IndexSection) -> None:
        section.indices[1].uuid.CopyFrom(section.indices[0].uuid)

    world.edit(edit)


def _two_segments(world: Damaged) -> None:
    def edit(_: table.Manifest, section: table.IndexSection) -> None:
        more = section.indices.add()
        more.CopyFrom(next(one for one in section.indices if one.name == "s_idx"))
        more.name = "id_idx"

    world.edit(edit)


def _in_index(name: str, plant: Callable[[str], Plant]) -> Plant:
    return lambda world: plant(f"_indices/{_index_uuid(world, name)}")(world)


def _drop_column(fragment: table.DataFragment) -> None:
    _fields([-2, 1])(fragment)


def _no_files(fragment: table.DataFragment) -> None:
    del fragment.files[:]


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage. ``only``: of "plain" or "stable" row ids; of both without."""

    name: str
    code: str
    plant: Plant
    only: str = ""


def _second_creation(world: Damaged) -> None:
    """Put the first version of branch dev after its newest one."""
    first, later = (f"tree/dev/{manifest_path(DELETED_IN + step)}" for step in (0, 2))
    world.root.write(later, world.root.read(first))
    world.edit(
        lambda message, _: _set(message, version=DELETED_IN + 2), DELETED_IN + 2, home="tree/dev/"
    )


def _wrong_sum(world: Damaged) -> None:
    path = world.path("data", suffix=".lance")
    write_record(world.root, [FileSum(path, "0" * 32, world.root.size(path))])


TAG, BRANCH = tag_path("kept"), branch_path("dev")
DELETED = _one_fragment(lambda one: one.ClearField("deletion_file"))
DAMAGES = (
    # refs
    Damage("tag is no JSON", "tag-unreadable", _write(TAG, b"{")),
    Damage("tag without version", "tag-unreadable", _write(TAG, b"{}")),
    Damage("tag of no version", "tag-dangling", lambda w: w.change_json(TAG, version=99)),
    Damage("tag of no branch", "tag-dangling", lambda w: w.change_json(TAG, branch="../../x")),
    Damage("tag size", "tag-manifest-size", lambda w: w.change_json(TAG, manifestSize=7)),
    Damage("branch is empty", "branch-unreadable", _write(BRANCH, b"")),
    Damage(
        "branch name", "branch-name", _write("_refs/branches/..%2Fx.json", b'{"parentVersion": 1}')
    ),
    Damage("branch has no versions", "branch-without-versions", _delete_all("tree/dev/_versions")),
    Damage("branch has no record", "branch-without-record", lambda w: w.root.delete(BRANCH)),
    Damage(
        "branch of no version",
        "branch-parent-missing",
        lambda w: w.change_json(BRANCH, parentVersion=99),
    ),
    Damage("branch of two creations", "branch-mixed", _second_creation),
    Damage("branch size", "branch-manifest-size", lambda w: w.change_json(BRANCH, manifestSize=7)),
    # lines of versions
    Damage("all manifests gone", "no-versions", _delete_all("_versions")),
    Damage("all data files gone", "half-dropped", _delete_all("data")),
    Damage("all manifests empty", "none-readable", _empty_all),
    Damage("newest is empty", "newest-unreadable", _cut(manifest_path(NEWEST), 0)),
    Damage("newest is half", "newest-unreadable", _cut(manifest_path(NEWEST), 0.5)),
    Damage("newest is gone", "newest-missing", lambda w: w.root.delete(manifest_path(NEWEST))),
    Damage("hint is no JSON", "hint-unreadable", _write(HINT_PATH, b"\xff")),
    Damage("hint is no number", "hint-unreadable", _write(HINT_PATH, b'{"version": "9"}')),
    Damage("hint is gone", "hint-missing", lambda w: w.root.delete(HINT_PATH)),
    Damage("hint is behind", "hint-stale", _write(HINT_PATH, b'{"version": 2}')),
    Damage("a version is gone", "version-gap", lambda w: w.root.delete(manifest_path(5))),
    Damage("two schemes of names", "naming-mixed", _v1_name),
    Damage("leftover of a commit", "leftover-file", _write("_versions/.tmpA1b2", b"x")),
    Damage("staged manifest", "staged-manifest", _write(f"{manifest_path(9)}-{UUID(int=1)}", b"x")),
    # manifests
    Damage("manifest of text", "manifest-unreadable", _write(manifest_path(2), b"damaged" * 9)),
    Damage("manifest of another version", "manifest-unreadable", _first_version_again),
    Damage(
        "flag of a newer writer",
        "manifest-not-supported",
        _newest(lambda m: _set(m, reader_feature_flags=1 << 40)),
    ),
    Damage("manifest of a branch", "manifest-branch", _newest(lambda m: _set(m, branch="other"))),
    Damage("flags", "flags-missing", _newest(lambda m: _set(m, writer_feature_flags=8))),
    Damage("highest fragment", "max-fragment-id", _newest(lambda m: _set(m, max_fragment_id=1))),
    Damage("next row id", "next-row-id", _newest(_next_row_id), only="stable"),
    Damage("field id twice", "newest-unreadable", _newest(lambda m: _set(m.fields[1], id=0))),
    Damage(
        "column name twice", "newest-unreadable", _newest(lambda m: _set(m.fields[1], name="id"))
    ),
    Damage(
        "no such type", "field-type", _newest(lambda m: _set(m.fields[1], logical_type="nothing"))
    ),
    Damage("fragment twice", "fragment-id-repeated", _newest(_repeat_fragment)),
    Damage("fragments turned", "fragment-order", _newest(_turn_fragments)),
    Damage("no writer, wrong counts", "fragment-counts", _newest(_without_writer)),
    Damage("old and new files", "file-versions-mixed", _one_fragment(_legacy_file)),
    Damage("no such base", "base-unknown", _one_fragment(_in_base)),
    Damage("bases of one id", "base-id-repeated", _newest(_bases_twice)),
    Damage("a base elsewhere", "base-not-allowed", _other_base),
    Damage("a dataset that was moved", "base-moved", _moved_base),
    # from version to version
    Damage("fragment dropped", "fragment-lost", _newest(_drop_fragment)),
    Damage("deletion file dropped", "deletions-lost", DELETED),
    Damage("fields of a file changed", "file-entry-changed", _one_fragment(_fields([0, 5]))),
    Damage(
        "size of a file changed",
        "file-entry-changed",
        _one_fragment(lambda one: _set(one.files[0], file_size_bytes=7)),
    ),
    Damage(
        "kind of an index changed",
        "index-entry-changed",
        _index(lambda one: _set(one.index_details, type_url="/lance.table.BitmapIndexDetails")),
    ),
    Damage("row ids changed", "file-entry-changed", _one_fragment(_range(60, 70)), only="stable"),
    Damage("a setting is not there", "config-lost", _newest(lambda m: m.config.clear())),
    Damage("a column is gone", "columns-lost", lambda w: w.edit(lambda m, _: m.fields.pop(), 2)),
    # transactions
    Damage("no transaction", "transaction-missing", _without_transaction),
    Damage(
        "no transaction file",
        "transaction-file-missing",
        lambda w: w.root.delete(_transaction_name(w)),
    ),
    Damage(
        "transaction file of text",
        "transaction-unreadable",
        lambda w: w.root.write(_transaction_name(w), b"\xff" * 9),
    ),
    Damage(
        "inline transaction of text",
        "transaction-unreadable",
        lambda w: w.edit(lambda *_: None, inline=lambda _: b"\xff" * 9),
    ),
    Damage("file of another transaction", "transaction-mismatch", _other_transaction),
    Damage("inline copy of another transaction", "transaction-mismatch", _other_uuid),
    # data files
    Damage("data file gone", "data-file-missing", _delete("data")),
    Damage("data file of a branch gone", "data-file-missing", _delete("tree/dev/data")),
    Damage("data file cut", "data-file-size", lambda w: w.change(w.path("data"), lambda d: d[:50])),
    Damage("data file empty", "data-file-size", lambda w: w.root.write(w.path("data"), b"")),
    Damage(
        "data file longer",
        "data-file-size",
        lambda w: w.change(w.path("data"), lambda d: d + b"\0" * 9),
    ),
    Damage("magic bytes", "data-file-damaged", _overwrite("data", -4, b"FAIL")),
    Damage("footer", "data-file-damaged", _overwrite("data", -40, b"\xff" * 30)),
    Damage(
        "file of a newer version", "file-not-supported", _overwrite("data", -8, b"\x09\0\x09\0")
    ),
    Damage(
        "rows of a file", "data-file-rows", _everywhere(lambda one: _set(one, physical_rows=11))
    ),
    Damage(
        "2**31 rows",
        "data-file-rows",
        _everywhere(lambda one: _set(one, physical_rows=2**31)),
        only="stable",
    ),
    Damage("columns of a file", "data-file-columns", _everywhere(_fields([0, 1], 0, 9))),
    Damage("fragment without files", "fragment-without-files", _one_fragment(_no_files)),
    Damage("field in two files", "fields-repeated", _one_fragment(_fields_twice)),
    Damage("field that never was", "fields-unknown", _everywhere(_fields([0, 99]))),
    Damage("field -1", "fields-unknown", _everywhere(_fields([0, -1]))),
    Damage("column that cannot be null", "field-not-stored", _everywhere(_drop_column)),
    Damage("pages", "values-damaged", _one_column),
    # checksums
    Damage("sum of other bytes", "checksum-wrong", _wrong_sum),
    Damage(
        "record of sums changed",
        "checksum-record-damaged",
        _write(f"_checksums/{'0' * 32}.sums", b"lance_nb checksums 1 xxh128\n"),
    ),
    # deleted rows, row ids
    Damage("deletion file gone", "deletion-file-missing", _delete("_deletions")),
    Damage(
        "deletion file of text",
        "deletion-file-damaged",
        lambda w: w.root.write(w.path("_deletions"), b"text"),
    ),
    Damage("number of deleted rows", "deletion-file-damaged", _one_fragment(_more_deletions)),
    Damage("deleted rows behind the last", "deletion-file-damaged", _far_deletions, only="plain"),
    Damage(
        "no row ids",
        "row-ids-missing",
        _one_fragment(lambda one: one.ClearField("inline_row_ids")),
        only="stable",
    ),
    Damage("too few row ids", "row-ids-damaged", _everywhere(_row_ids([1, 2, 3])), only="stable"),
    Damage("2**62 row ids", "row-ids-damaged", _everywhere(_range(0, 2**62)), only="stable"),
    Damage(
        "row id twice in a fragment",
        "row-ids-damaged",
        _everywhere(_row_ids([7, *range(9)])),
        only="stable",
    ),
    Damage(
        "row ids of two fragments", "row-ids-repeated", _everywhere(_range(5, 15), 1), only="stable"
    ),
    Damage("rows of a later version", "row-versions-damaged", _everywhere(_future), only="stable"),
    # indices
    Damage("index gone", "index-missing", _in_index("id_idx", _delete_all)),
    Damage("file of an index gone", "index-file-missing", _in_index("id_idx", _delete)),
    Damage(
        "file of an index longer",
        "index-file-size",
        _in_index("id_idx", lambda f: lambda w: w.change(w.path(f), lambda d: d + b"x")),
    ),
    Damage(
        "file of an index damaged",
        "index-damaged",
        _in_index("s_idx", lambda f: _overwrite(f, -4, b"FAIL")),
    ),
    Damage(
        "B-tree covers too much",
        "index-rows-missing",
        _index(lambda one: _set(one, fragment_bitmap=BitMap([0, 1, 2]).serialize())),
    ),
    Damage("B-tree lacks a row", "index-rows-missing", _index_rows(lambda ids: ids[:-1])),
    Damage(
        "B-tree of rows that never were",
        "index-rows-unknown",
        _index_rows(lambda ids: np.append(ids[:-1], np.uint64(77 << 32))),
    ),
    Damage(
        "B-tree of a row behind the end of its fragment",
        "index-rows-unknown",
        _index_rows(lambda ids: np.append(ids[:-1], np.uint64(1 << 32 | ROWS))),
        only="plain",
    ),
    Damage(
        "B-tree has a row twice",
        "index-rows-repeated",
        _index_rows(lambda ids: np.append(ids, ids[:1])),
        only="plain",
    ),
    Damage(
        "bitmap covers too much",
        "index-rows-missing",
        _index(lambda one: _set(one, fragment_bitmap=BitMap([0, 2]).serialize()), "s_idx"),
    ),
    Damage(
        "bitmap lacks rows", "index-rows-missing", _bitmap_rows(lambda sets: [b"\0" * 4, *sets[1:]])
    ),
    Damage(
        "bitmap of rows that never were",
        "index-rows-unknown",
        _bitmap_rows(lambda sets: [row_set([50, 99 << 32]), *sets[1:]]),
    ),
    Damage(
        "bitmap under other keys",
        "index-values-wrong",
        _bitmap_rows(lambda sets: [*sets[1:], sets[0]]),
    ),
    Damage(
        "bitmap of broken sets",
        "index-damaged",
        _bitmap_rows(lambda sets: [b"\xff" * 7, *sets[1:]]),
    ),
    Damage("index on no field", "index-field", _index(lambda one: one.fields.append(77))),
    Damage("indices of one uuid", "index-uuid-repeated", _same_uuids),
    Damage(
        "index without coverage",
        "index-coverage-unknown",
        _index(lambda one: _set(one, fragment_bitmap=b"")),
    ),
    Damage("segments that overlap", "index-coverage-overlaps", _two_segments),
)


def worlds() -> Iterator[tuple[bool, str]]:
    """Yield the two kinds of dataset: with plain row ids, and with stable ones."""
    yield from (
        (False, "memory://damages-plain/d.lance"),
        (True, "memory://damages-stable/d.lance"),
    )


# What of the planted damage a repair does away with, by code.
MENDED = {
    "newest-unreadable", "newest-missing", "hint-unreadable", "hint-stale", "hint-missing",
    "leftover-file", "tag-unreadable", "branch-unreadable", "branch-without-versions",
    "branch-without-record", "naming-mixed", "base-moved",
}  # fmt: skip
