"""Copies of the golden datasets that a test may read, move and damage.

The manifests of branches name the folder of their parent by its absolute path, so a copy rewrites
those base paths; nothing else changes, and every other byte stays where it was.
"""

from __future__ import annotations

import json
import shutil
import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_nb._pb import table as pb
from lance_nb.format.manifest import FOOTER, message_of
from lance_nb.storage.base import Store
from lance_nb.storage.registry import open_store

GOLDEN = Path(__file__).parent / "pylance_14_0_2"
NAMES = ("history", "types_2_1", "types_2_2", "stable_ids", "empty", "v1_names")

Change = Callable[[pb.Manifest], object]


def refs(name: str) -> dict[str, Any]:
    """Return what pylance said about versions, tags and branches."""
    return json.loads((GOLDEN / f"{name}.expected" / "refs.json").read_text())


def expected_versions(name: str) -> Iterator[tuple[str | None, int]]:
    """Yield (branch, version) of everything that has expected rows."""
    for branch, versions in refs(name)["versions"].items():
        for one in versions:
            yield None if branch == "main" else branch, one["version"]


def expected(name: str, version: int, branch: str | None = None) -> pa.Table:
    """Return the rows that pylance read of a version."""
    file = f"{(branch or 'main').replace('/', '%2F')}@{version}.arrow"
    with pa.memory_map(str(GOLDEN / f"{name}.expected" / file)) as source:
        return pa.ipc.open_file(source).read_all()


def copy_to_folder(name: str, folder: Path) -> Path:
    """Copy a golden dataset below ``folder`` and return where it is."""
    target = folder / f"{name}.lance"
    shutil.copytree(GOLDEN / f"{name}.lance", target, copy_function=shutil.copyfile)
    for path in target.glob("tree/**/_versions/*.manifest"):
        path.write_bytes(relocated(path.read_bytes(), refs(name)["origin"], str(target)))
    return target


def copy_to_store(name: str, uri: str) -> Store:
    """Copy a golden dataset into the store at ``uri`` and return the store."""
    store = open_store(uri)
    source = GOLDEN / f"{name}.lance"
    for path in sorted(source.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            inside = path.relative_to(source).as_posix()
            if inside.startswith("tree/") and inside.endswith(".manifest"):
                data = relocated(data, refs(name)["origin"], store.uri)
            store.write(inside, data)
    return store


def copy_to_memory(name: str) -> Store:
    """Copy a golden dataset into a memory store of its own."""
    return copy_to_store(name, f"memory://{uuid.uuid4().hex}/{name}.lance")


def relocated(data: bytes, origin: str, root: str) -> bytes:
    """Return a manifest file whose base paths are moved from ``origin`` to ``root``."""

    def move(manifest: pb.Manifest) -> None:
        for base in manifest.base_paths:
            base.path = root + base.path.removeprefix(origin)

    return edited_manifest(data, move)


def edited_manifest(data: bytes, change: Change) -> bytes:
    """Return a manifest file with its message changed; the sections before it stay."""
    found = message_of(data, len(data), "")
    assert not isinstance(found, int)
    message, _, position = found
    change(message)
    return framed(data[:position], message.SerializeToString())


def framed(sections: bytes, message: bytes) -> bytes:
    """Put a manifest message behind its sections, with a length and a footer."""
    footer = FOOTER.pack(len(sections), 0, 2, b"LANC")
    return sections + struct.pack("<I", len(message)) + message + footer


def edited_fragment(raw: bytes, change: Callable[[pb.DataFragment], object]) -> bytes:
    """Return a serialized fragment with a change."""
    fragment = pb.DataFragment.FromString(raw)
    change(fragment)
    return fragment.SerializeToString()
