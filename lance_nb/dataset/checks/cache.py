"""The cache of checks: what each expectation found in each fragment.

A result belongs to the text of an expectation, the columns that it names (path, field id and type),
and a fragment's data files of these columns, its deletion file and its number of rows. Such files
never change, so a result holds for every version that has the fragment; a commit checks only what
it touched, and a column that is added elsewhere changes nothing.

Layout: ``~/.cache/lance_nb/checks/`` (or below ``XDG_CACHE_HOME``), a folder of mode 700 with files
of mode 600 that must belong to the user; per dataset and expectation one file, named after two
SHA-256 hashes::

    <dataset>-<expectation>.json    {"format": 1, "results": {fragment key: [numbers], ...}}
    <dataset>-<expectation>.arrow   unique keys: columns ``key`` (string), ``hashes`` (list<uint64>)

The files hold counts and hashes, no values and no credentials. A file that is damaged, or that may
not be the user's, counts as empty; without a usable folder the results are kept in memory alone.

Limits: ``RESULTS_MAX`` results and ``HASHES_MAX`` hashes of an expectation are kept on disk, and
``FILES_MAX`` files, the oldest are removed. Datasets in memory are cached in their session only.
Source: our own.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_nb.errors import StorageError
from lance_nb.storage.private_folder import PrivateFolder, cache_folder

if TYPE_CHECKING:
    from lance_nb.dataset.checks.key_hashes import Hashes
    from lance_nb.format.fragment import Fragment
    from lance_nb.session.session import Session
    from lance_nb.table.snapshot import Snapshot

FORMAT = 1
RESULTS_MAX = 200_000
HASHES_MAX = 20_000_000
FILES_MAX = 1000
_JSON_BYTES_MAX = 64 * 1024 * 1024
_ARROW_BYTES_MAX = 512 * 1024 * 1024
_HASHES_SCHEMA = pa.schema([("key", pa.string()), ("hashes", pa.list_(pa.uint64()))])

Numbers = tuple[float, ...]


def digest(*parts: str) -> str:
    """Return a short hash of texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


class ResultCache:
    """What one expectation found, by the key of a fragment. Not for several threads."""

    def __init__(self, name: str, folder: PrivateFolder | None) -> None:
        self._name = name
        self._folder = folder
        self._results: dict[str, Numbers] | None = None
        self._hashes: dict[str, Hashes] | None = None
        self._new_results = self._new_hashes = False

    def get(self, key: str) -> Numbers | None:
        """Return the numbers that were found, None if they are not known."""
        if self._results is None:
            self._results = self._read_results()
        return self._results.get(key)

    def put(self, key: str, numbers: Sequence[float]) -> None:
        """Keep numbers."""
        if self.get(key) is None and self._results is not None:
            self._results[key] = tuple(numbers)
            self._new_results = True

    def hashes(self, key: str) -> Hashes | None:
        """Return the sorted hashes of the keys of a fragment, None if they are not known."""
        if self._hashes is None:
            self._hashes = self._read_hashes()
        return self._hashes.get(key)

    def put_hashes(self, key: str, hashes: Hashes) -> None:
        """Keep sorted hashes."""
        if self.hashes(key) is None and self._hashes is not None:
            self._hashes[key] = hashes
            self._new_hashes = True

    def save(self) -> None:
        """Write what is new; a folder that cannot be used is no error."""
        if self._folder is None:
            return
        with suppress(StorageError):
            if self._new_results and self._results is not None:
                # Another process may have added results meanwhile.
                results = {**self._read_results(), **self._results}
                newest = dict(list(results.items())[-RESULTS_MAX:])
                data = json.dumps({"format": FORMAT, "results": newest}).encode()
                self._folder.write(f"{self._name}.json", data)
                self._new_results = False
            if self._new_hashes and self._hashes is not None:
                self._folder.write(f"{self._name}.arrow", _arrow_bytes(self._hashes))
                self._new_hashes = False
            names = self._folder.names()
            for name in names[: max(0, len(names) - FILES_MAX)]:
                self._folder.remove(name)

    def _read(self, suffix: str, size_bytes_max: int) -> bytes | None:
        if self._folder is None:
            return None
        with suppress(StorageError):
            return self._folder.read(f"{self._name}{suffix}", size_bytes_max)
        return None

    def _read_results(self) -> dict[str, Numbers]:
        data = self._read(".json", _JSON_BYTES_MAX)
        if data is None:
            return {}
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            return {}
        results = parsed.get("results") if isinstance(parsed, dict) else None
        if not isinstance(results, dict) or parsed.get("format") != FORMAT:
            return {}
        return {key: tuple(result) for key, result in results.items() if _are_numbers(result)}

    def _read_hashes(self) -> dict[str, Hashes]:
        data = self._read(".arrow", _ARROW_BYTES_MAX)
        if data is None:
            return {}
        try:
            with pa.ipc.open_stream(data) as reader:
                table = reader.read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError):
            return {}
        if table.schema != _HASHES_SCHEMA:
            return {}
        keys = table["key"].to_pylist()
        column = table["hashes"].combine_chunks()
        lists = [column[index].values for index in range(len(keys))]
        return {
            key: np.asarray(fragment_hashes.to_numpy(zero_copy_only=False), np.uint64)
            for key, fragment_hashes in zip(keys, lists, strict=True)
            if key is not None and fragment_hashes is not None and not fragment_hashes.null_count
        }


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(number, int | float) and not isinstance(number, bool) for number in value
    )


def _arrow_bytes(hashes: dict[str, Hashes]) -> bytes:
    keys, arrays, total = [], [], 0
    for key, fragment_hashes in reversed(hashes.items()):  # the newest first
        total += len(fragment_hashes)
        if total > HASHES_MAX:
            break
        keys.append(key)
        arrays.append(fragment_hashes)
    ends = np.cumsum([0, *map(len, arrays)]).astype(np.int32)
    values = np.concatenate(arrays) if arrays else np.zeros(0, np.uint64)
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(values, pa.uint64()))
    table = pa.Table.from_arrays([pa.array(keys, pa.string()), lists], schema=_HASHES_SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _HASHES_SCHEMA) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


class CheckCache:
    """The caches of all expectations of one dataset, and the keys of its fragments."""

    def __init__(self, session: Session, *, is_used: bool = True) -> None:
        self._session = session
        self._is_used = is_used
        on_disk = is_used and session.root.scheme != "memory"
        place = os.environ.get("XDG_CACHE_HOME")
        self._folder = cache_folder(place, "checks") if on_disk else None
        # A session of a dataset in memory keeps the results itself.
        session_checks = session.check_results if is_used else {}
        self._caches: dict[str, ResultCache] = session_checks
        self._files: dict[tuple[object, bytes], _FragmentFiles] = {}

    def of(self, statement: str, columns: str) -> ResultCache:
        """Return the cache of an expectation; ``columns`` describes the columns that it names."""
        name = f"{digest(self._session.root.uri)}-{digest(statement, columns)}"
        if name not in self._caches:
            self._caches[name] = ResultCache(name, self._folder)
        return self._caches[name]

    def save(self) -> None:
        """Write what is new."""
        for cache in self._caches.values():
            cache.save()

    def fragment_keys(self, snapshot: Snapshot, field_ids: frozenset[int]) -> list[str]:
        """Return a key for each fragment of a version, from the files of these fields alone."""
        place = (snapshot.branch, snapshot.manifest.base_paths)
        fragments = snapshot.manifest.fragments
        keys = []
        for position, raw in enumerate(fragments.raw):
            files = self._files.get((place, raw))
            if files is None:
                files = self._files[place, raw] = _FragmentFiles(snapshot, fragments[position])
            keys.append(files.key(field_ids))
        return keys


class _FragmentFiles:
    """Where the files of a fragment lie, and the keys that were made of them."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        bases: dict[int | None, str] = {
            base_path.id: base_path.path.rstrip("/") for base_path in snapshot.manifest.base_paths
        }
        home = snapshot.locations.home.uri.rstrip("/")
        self._files = tuple(
            (frozenset(file.fields), f"{bases.get(file.base_id, home)}/{file.path}\0{file.fields}")
            for file in fragment.files
        )
        deletion = fragment.deletion_file
        deleted = "" if deletion is None else (
            f"{bases.get(deletion.base_id, home)}/{deletion.location(fragment.id)}"
        )  # fmt: skip
        overlays = "".join(overlay.hex() for overlay in fragment.overlays)
        self._row_state = f"{fragment.physical_rows}\0{deleted}\0{overlays}"
        self._keys: dict[frozenset[int], str] = {}

    def key(self, field_ids: frozenset[int]) -> str:
        cached = self._keys.get(field_ids)
        if cached is None:
            places = sorted(place for fields, place in self._files if fields & field_ids)
            cached = self._keys[field_ids] = digest(self._row_state, *places)
        return cached
