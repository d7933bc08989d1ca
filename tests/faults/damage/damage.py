"""Seeded ways to damage a whole dataset: messages, records, bytes and names of its files.

``damage`` takes the files and returns the change; it writes nothing. What a message or a record
says is changed in its own terms, so that the file still parses: ids, counts and offsets become huge
or negative, lists are repeated, cut and swapped, strings become paths out of the dataset, control
characters and markup.
"""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_nb._pb import rowids, table, transaction
from lance_nb.errors import LanceError
from tests.faults.damage.mutate import (
    NUMBERS,
    change_message,
    edit_number,
    flip_bits,
    mutate,
    overwrite,
    truncate,
)
from tests.faults.damage.worlds import Change, Files
from tests.support.damages import edited_manifest_file, fragments_of, put_fragments
from tests.support.markup_payloads import PAYLOADS

MARKUP = [one.replace("\0", "") for one in PAYLOADS]
TEXTS = (
    "", "x", ".", "..", "../../x", "/etc/passwd", "a/../../b", "%2e%2e%2f", "a\\b", "\0", "a\nb",
    "\x1b[31mred", "\u202egpj", "\ud7ff\ufeff", "é" * 50, "x" * 300, "x" * 5000, "NUL", "int32",
    "struct", "list", "list.struct", "large_list", "map", "null", "json", "blob", "bool",
    "dict:string:int32:false", "fixed_size_list:float:9", "fixed_size_list:float:2147483647",
    "fixed_size_binary:-1", "fixed_size_binary:2147483647", "decimal:128:99:-3", "decimal:256:1:1",
    "timestamp:s:Nowhere/Land", "timestamp:us:-", "time64:ns", "date64:ms", "duration:us",
    "extension", "main", "side", "side/deep", "s3://x/y", "http://169.254.169.254/x", "file:///etc",
    "memory://hostile-other/d.lance", "lance.auto_cleanup.interval", "-1", "1e400", "nan", "2.0",
    "99.9", "true", "/lance.table.BTreeIndexDetails", "/lance.table.BitmapIndexDetails",
    "/lance.index.pb.FragmentReuseIndexDetails", "__lance_frag_reuse", "__lance_mem_wal",
    *MARKUP,
)  # fmt: skip
RECORD_VALUES = (None, -1, 0, 1, 2**31, 2**63, 2**64, 10**400, 1.5, [], {}, True, [[]], {"a": {}},
                 float("inf"), float("nan"), *TEXTS)  # fmt: skip
FILE_NAMES = (
    "_versions/99.manifest", "_versions/18446744073709551615.manifest", "_versions/0.manifest",
    "_versions/99999999999999999999999.manifest", "_versions/d5.manifest", "_versions/-1.manifest",
    "_versions/d18446744073709551615.manifest", "_versions/.tmpA1b2", "_versions/x.manifest",
    "_versions/18446744073709551500.manifest-0f0e0d0c-0b0a-0908-0706-050403020100",
    "_versions/3.manifest#1", "_refs/tags/..%2F..%2Fx.json", "_refs/tags/%ff.json",
    "_refs/tags/%3Cimg src=x onerror=window.__x=1%3E.json", "_refs/tags/a%00b.json",
    "_refs/branches/..%2Fx.json", "_refs/branches/%1B[31m.json", "_refs/branches/main.json",
    "_refs/branches/.json", "_refs/tags/.json", "_transactions/x.txn", "_transactions/9-9.txn",
    "_deletions/0-1-1.arrow", "_deletions/x.bin", "_indices/x/y.lance", "_checksums/x.sums",
    f"_checksums/{'0' * 32}.sums", "_quarantine/x/repair.json", "_quarantine/x", "data/x.lance",
    "tree/x/_versions/1.manifest", "tree/..%2F/x/_versions/18446744073709551614.manifest",
    "tree/<img src=x onerror=window.__x=1>/_versions/18446744073709551614.manifest",
)  # fmt: skip
# How often files of a kind are chosen, by the beginning of their path, a branch's left out.
KINDS = {"_versions/": 6.0, "data/": 3.0, "_indices/": 1.5, "_deletions/": 1.5,
         "_transactions/": 1.0, "_refs/": 1.5, "_checksums/": 0.5}  # fmt: skip
UNREADABLE = (LanceError, DecodeError, LookupError, ValueError, AttributeError, struct.error,
              TypeError)  # fmt: skip
Edit = Callable[[bytes, random.Random], bytes]


def damage(files: Files, rng: random.Random) -> tuple[str, Change]:
    """Damage one or two places; return what was done, and the files that are different."""
    changed: dict[str, bytes | None] = {}
    said = [_damage_once(files, changed, rng) for _ in range(rng.choice((1, 1, 1, 1, 2)))]
    return "; ".join(said), changed


def _damage_once(files: Files, changed: dict[str, bytes | None], rng: random.Random) -> str:
    way = rng.random()
    path = _path(files, rng)
    if way < 0.03:
        changed[path] = None
        return f"{path} was deleted"
    other = rng.choice([one for one in files if _kind(one) == _kind(path)])
    if way < 0.06:
        other = other if rng.random() < 0.6 else rng.choice(list(files))
        changed[path] = files[other]
        return f"{path} is {other}"
    if way < 0.09:
        name = rng.choice(FILE_NAMES)
        changed[name] = files[path] if rng.random() < 0.7 else rng.choice((b"", b"{}", b"\xff" * 9))
        return f"{path} as {name} too"
    if way < 0.11:
        at, until = (rng.randrange(len(files[one]) + 1) for one in (path, other))
        changed[path] = files[path][:at] + files[other][until:]
        return f"{path} goes on as {other}"
    if way < 0.13:
        changed[path] = rng.choice((b"", bytes(len(files[path])), b"\xff" * len(files[path])))
        return f"{path} is empty, zeros or ones"
    if path.endswith(".manifest") and way < 0.28:
        return _every_manifest(files, changed, path, rng)
    name, found = edited(path, files[path], rng)
    changed[path] = found
    return f"{name} of {path}"


def _path(files: Files, rng: random.Random) -> str:
    """Choose a file: by its kind, and of the manifests often the newest."""
    kinds = [one for one in KINDS if any(_kind(path) == one for path in files)]
    kind = rng.choices(kinds, [KINDS[one] for one in kinds])[0]
    paths = [one for one in files if _kind(one) == kind]
    if kind == "_versions/" and rng.random() < 0.6:
        mains = [one for one in paths if one.startswith(kind) and one.endswith(".manifest")]
        if mains:
            return max(mains, key=_version_of)
    return rng.choice(paths)


def _kind(path: str) -> str:
    """Return the folder that says what a file is, also of a file on a branch."""
    return next((one for one in KINDS if f"/{one}" in f"/{path}"), "")


def _version_of(path: str) -> int:
    digits = path.rpartition("/")[2].partition(".")[0]
    number = int(digits) if digits.isdigit() else 0
    return 2**64 - 1 - number if len(digits) == 20 else number


def _every_manifest(
    files: Files, changed: dict[str, bytes | None], path: str, rng: random.Random
) -> str:
    """Do the same to every version of a branch, so that none of them contradicts the others."""
    folder, seed = path.rpartition("/")[0], rng.random()
    for one in files:
        if one.startswith(f"{folder}/") and one.endswith(".manifest"):
            try:
                changed[one] = manifest_field(files[one], random.Random(seed))
            except UNREADABLE:
                continue
    return f"a field of all manifests in {folder}"


def edited(path: str, data: bytes, rng: random.Random) -> tuple[str, bytes]:
    edit = rng.choice(_edits(path))
    try:
        return edit.__name__, edit(data, rng)
    except UNREADABLE:  # of an older format, or without what is to be changed
        return "flip_bits", flip_bits(data, rng) if data else b"x"


def _edits(path: str) -> tuple[Edit, ...]:
    blind: tuple[Edit, ...] = (flip_bits, overwrite, truncate, footer_number)
    if path.endswith(".manifest"):
        return (manifest_field, manifest_field, manifest_field, manifest_field, index_section,
                index_section, inline_transaction, fragment_list, fragment_list, row_ids,
                *blind)  # fmt: skip
    if path.endswith((".lance", ".idx")):
        return (mutate, mutate, mutate, mutate, edit_number, *blind)
    if path.endswith(".txn"):
        return (transaction_field, transaction_field, transaction_field, *blind)
    if path.endswith(".json"):
        return (record_value, record_value, record_value, record_value, *blind)
    if path.endswith(".sums"):
        return (checksum_line, checksum_line, *blind)
    if "_deletions/" in path:
        return (other_deletions, other_deletions, other_deletions, *blind)
    return blind


# --- edits ----------------------------------------------------------------------------------------


def manifest_field(data: bytes, rng: random.Random) -> bytes:
    """Change fields of a manifest or of its fragments."""

    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        for _ in range(rng.choice((1, 1, 1, 3))):
            _change_manifest(message, rng)

    return edited_manifest_file(data, edit, lambda one: one)


def _change_manifest(manifest: table.Manifest, rng: random.Random) -> None:
    """Change one field of the manifest or of one of its fragments."""
    if manifest.fragments and rng.random() < 0.6:
        at = rng.randrange(len(manifest.fragments))
        fragment = table.DataFragment.FromString(manifest.fragments[at])
        change_message(fragment, rng, TEXTS)
        manifest.fragments[at] = fragment.SerializeToString()
    else:
        change_message(manifest, rng, TEXTS)


def fragment_list(data: bytes, rng: random.Random) -> bytes:
    """Repeat, drop or move a fragment, or give one another's files or deletions."""

    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        fragments = fragments_of(message)
        if not fragments:
            return
        one, other = rng.choice(fragments), rng.choice(fragments)
        match rng.randrange(7):
            case 0:
                fragments.extend([one] * rng.choice((1, 1, 800)))
            case 1:
                fragments.remove(one)
            case 2:
                fragments.reverse()
            case 3:
                one.files.extend(list(other.files))  # a list of its own: the two may be one
            case 4:
                del one.files[:]
                one.files.extend(list(other.files)[:1])
            case 5:
                one.deletion_file.CopyFrom(other.deletion_file)
            case _:
                one.id = other.id
        put_fragments(message, fragments)

    return edited_manifest_file(data, edit, lambda one: one)


def row_ids(data: bytes, rng: random.Random) -> bytes:
    """Change the row ids or the row versions that a fragment has inline."""
    names = ("inline_row_ids", "inline_last_updated_at_versions", "inline_created_at_versions")

    def edit(message: table.Manifest, _: table.IndexSection) -> None:
        fragments = fragments_of(message)
        one = rng.choice(fragments)
        name = rng.choice([here for here in names if one.HasField(here)])
        kind = rowids.RowIdSequence if name == names[0] else rowids.RowDatasetVersionSequence
        found: Any = kind.FromString(getattr(one, name))
        for _ in range(rng.choice((1, 1, 2))):
            change_message(found, rng, TEXTS)
        setattr(one, name, found.SerializeToString())
        put_fragments(message, fragments)

    return edited_manifest_file(data, edit, lambda one: one)


def index_section(data: bytes, rng: random.Random) -> bytes:
    """Change a field of an index's record, or repeat one."""

    def edit(_: table.Manifest, section: table.IndexSection) -> None:
        chosen = rng.choice(list(section.indices))
        way = rng.random()
        if way < 0.15:
            section.indices.add().CopyFrom(chosen)
        elif way < 0.35:
            fragments = [rng.choice(NUMBERS) % 2**32 for _ in range(rng.randrange(9))]
            chosen.fragment_bitmap = BitMap(fragments).serialize()
        else:
            change_message(chosen, rng, TEXTS)

    return edited_manifest_file(data, edit, lambda one: one)


def inline_transaction(data: bytes, rng: random.Random) -> bytes:
    """Change a field of the transaction in a manifest."""
    return edited_manifest_file(data, lambda *_: None, lambda one: transaction_field(one, rng))


def transaction_field(data: bytes, rng: random.Random) -> bytes:
    """Change fields of a transaction."""
    message = transaction.Transaction.FromString(data)
    for _ in range(rng.choice((1, 1, 3))):
        change_message(message, rng, TEXTS)
    return bytes(message.SerializeToString())


def record_value(data: bytes, rng: random.Random) -> bytes:
    """Change, drop or add a key of a record in JSON."""
    record = json.loads(data)
    key = rng.choice([*record, "metadata", "more"])
    way = rng.random()
    if key in record and way < 0.15:
        del record[key]
    elif isinstance(record.get(key), dict) and way < 0.5:
        record[key][rng.choice(TEXTS)] = rng.choice(RECORD_VALUES)
    else:
        record[key] = rng.choice(RECORD_VALUES)
    if way > 0.97:
        return b"[" * 100_000
    return json.dumps(record, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def checksum_line(data: bytes, rng: random.Random) -> bytes:
    """Change a word of a record of checksums, or repeat, drop or swap its lines."""
    lines = data.decode().split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            words = lines[at].split(" ", 2)
            words[rng.randrange(len(words))] = str(rng.choice((*TEXTS, *NUMBERS)))
            lines[at] = " ".join(words)
        case 1:
            lines[at], lines[other] = lines[other], lines[at]
        case 2:
            lines.pop(at)
        case _:
            lines.insert(other, lines[at])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def footer_number(data: bytes, rng: random.Random) -> bytes:
    """Let a footer name another place, size, number or version."""
    width = rng.choice((1, 2, 4, 8))
    at = max(0, len(data) - rng.randrange(width, 64))
    old = int.from_bytes(data[at : at + width], "little")
    new = rng.choice((*NUMBERS, old + 1, old - 1, len(data), len(data) - 1, len(data) + 1))
    piece = (new % (1 << 8 * width)).to_bytes(width, "little")
    return (data[:at] + piece + data[at + width :])[: len(data)]


def other_deletions(data: bytes, rng: random.Random) -> bytes:
    """Return a deletion file of either kind with other rows, or of other columns."""
    rows = [rng.choice((*NUMBERS, *range(40))) % 2**32 for _ in range(rng.randrange(30))]
    if rng.random() < 0.4:
        return bytes(BitMap(rows).serialize())
    kind = rng.choice((pa.uint32(), pa.uint32(), pa.uint64(), pa.int32(), pa.string()))
    values: list[Any] = [str(one) for one in rows] if kind == pa.string() else list(rows)
    if kind == pa.int32():
        values = [one % 2**31 for one in rows]
    if values and rng.random() < 0.2:
        values[0] = None
    found = pa.table({rng.choice(("row_id", "x")): pa.array(values, kind)})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, found.schema) as file:
        file.write_table(found)
    return sink.getvalue()
