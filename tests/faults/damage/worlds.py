"""The whole datasets that are damaged: golden ones of many releases, and archives of ours.

A world is a dataset in a place of its own, in memory or in a folder, which is put back as it was
before every case. The archives in ``golden/datasets`` hold what the golden datasets of
tests/golden lack: indices of every kind, blobs, clones, and what we write ourselves.
"""

from __future__ import annotations

import contextlib
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from lance_nb.errors import LanceError
from lance_nb.storage import memory
from lance_nb.storage.base import Store
from lance_nb.storage.registry import open_store
from tests.golden.copies import GOLDEN, refs, relocated

ARCHIVES = Path(__file__).parent / "golden" / "datasets"
WRITTEN = ("ours_2_0", "ours_2_1", "ours_2_2", "ours_blobs", "clone", "indexed", "reused",
           "blobs_v1", "blobs_v2")  # fmt: skip
RELEASED = (
    "pylance_14_0_2/history", "pylance_14_0_2/stable_ids", "pylance_14_0_2/types_2_1",
    "pylance_14_0_2/types_2_2", "pylance_14_0_2/v1_names", "pylance_4_0_2/stable_ids_2_2",
    "pylance_1_0_4/history_2_1", "pylance_0_26_1/stable_ids_2_0", "pylance_0_12_3/history_2_0",
    "pylance_0_12_3/types_2_0", "pylance_0_12_3/history_legacy", "pylance_0_8_21/types_legacy",
    "pylance_0_7_5/deletions", "pylance_0_7_5/vector_index", "pylance_0_16_0/mixed_files",
    "pylance_0_21_0/overlapping_segments", "pylance_14_0_2/empty",
)  # fmt: skip
IN_FOLDERS = ("ours_2_2", "clone", "pylance_14_0_2/history")
NAMES = (*WRITTEN, *WRITTEN, *RELEASED, *(f"folder:{one}" for one in IN_FOLDERS))

# What damaged paths name, beside the dataset and beside the folder around it: never to be touched.
CANARIES = ("x", "b", "data/x.lance")
# Where verbs write beside the dataset when they are asked to.
TARGETS = ("clone.lance/", "more/", "base/")

Files = dict[str, bytes]
Change = Mapping[str, bytes | None]  # by path; None: the file is gone


class World:
    """One dataset; ``files`` are those in its folder, ``rest`` those beside it."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.name = name
        kind, _, source = name.rpartition(":")
        self._in_memory = not kind
        self._host = f"hostile-{source.replace('/', '-')}"
        top = f"memory://{self._host}" if self._in_memory else str(scratch / self._host)
        self.top, self.uri = top, f"{top}/d.lance"
        found = _archived(source) if source in WRITTEN else _released(source, self.uri)
        if not self._in_memory:
            found = _moved(found, f"memory://{self._host}", top)
        self.rest = {path: data for path, data in found.items() if not path.startswith("d.lance/")}
        self.rest |= dict.fromkeys(CANARIES, b"canary")
        self._around = None if self._in_memory else scratch
        self.files = {
            path.removeprefix("d.lance/"): data
            for path, data in sorted(found.items())
            if path.startswith("d.lance/")
        }
        self.restore({})

    def restore(self, change: Change) -> None:
        """Put everything back, but for what ``change`` says."""
        if self._in_memory:
            memory.clear(self._host)
        else:
            shutil.rmtree(self.top, ignore_errors=True)
        store = open_store(self.top)
        for path, data in self.rest.items():
            store.write(path, data)
        home = open_store(self.uri)
        for path, found in ({**self.files, **change}).items():
            if found is not None:
                _write(home, path, found)

    def touched(self) -> list[str]:
        """Return the files beside the dataset that were changed, removed or made."""
        store = open_store(self.top)
        names = [one.name for one in store.list_recursive("")]
        beside = {one for one in names if not one.startswith(("d.lance/", *TARGETS))}
        expected = {one for one in self.rest if not one.startswith(TARGETS)}
        found = sorted(beside ^ expected)
        found += [one for one in self.rest.keys() & set(names) if store.read(one) != self.rest[one]]
        if self._around is not None:
            found += [one.name for one in self._around.iterdir() if one.name[:8] != "hostile-"]
        return found


def _write(home: Store, path: str, data: bytes) -> None:
    with contextlib.suppress(LanceError):  # a name that this store cannot have
        home.write(path, data)


def _archived(name: str) -> Files:
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as archive:
        return {path: archive.read(path) for path in archive.namelist()}


def _released(name: str, uri: str) -> Files:
    release, _, short = name.partition("/")
    source = GOLDEN.parent / release / f"{short}.lance"
    found = {}
    for path in sorted(one for one in source.rglob("*") if one.is_file()):
        inside, data = path.relative_to(source).as_posix(), path.read_bytes()
        if inside.startswith("tree/") and inside.endswith(".manifest"):
            data = relocated(data, refs(short)["origin"], uri)
        found[f"d.lance/{inside}"] = data
    return found


def _moved(files: Files, origin: str, place: str) -> Files:
    """Let base paths name the folder."""
    return {
        path: relocated(data, origin, place) if path.endswith(".manifest") else data
        for path, data in files.items()
    }
