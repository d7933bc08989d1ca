"""Spans: from which version to which a file is referred to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.format.feature_flags import MANAGED_BLOBS
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest_history import NamedFile, VersionFiles
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import open_store
from lance_nb.table import file_references
from lance_nb.table.file_references import Line, References, check_complete
from tests.support.manifest_files import fragment, manifest


def version(
    number: int, come: str = "", go: str = "", flags: int = 0, *, unknown: bool = False
) -> VersionFiles:
    appeared = tuple(NamedFile("data", f"data/{one}.lance") for one in come)
    vanished = tuple(NamedFile("data", f"data/{one}.lance") for one in go)
    return VersionFiles(number, 1, 1, 1, appeared, vanished, (), flags, flags, unknown, "m")


def line_of(*versions: VersionFiles) -> tuple[Line, References]:
    references = References()
    line = references.lines[""] = Line("")
    for one in versions:
        line.add(one, references.identity)
    return line, references


def spans(line: Line) -> set[tuple[int, int, int]]:
    found = line.spans()
    return set(zip(found.identity.tolist(), found.start.tolist(), found.stop.tolist(), strict=True))


def test_a_file_has_one_span_per_time_it_is_there():
    line, references = line_of(version(1, "a"), version(2, "b", "a"), version(3, "a"), version(4))
    a, b = references.identity("data:a"), references.identity("data:b")
    assert spans(line) == {(a, 0, 1), (a, 2, 4), (b, 1, 4)}
    assert line.first_named[NamedFile("data", "data/a.lance")] == 0


def test_a_file_that_is_named_twice_stays_until_both_are_gone():
    line, references = line_of(version(1, "aa"), version(2, "", "a"), version(3, "", "a"))
    assert spans(line) == {(references.identity("data:a"), 0, 2)}


def test_spans_know_which_versions_they_touch():
    line, _ = line_of(version(1, "a"), version(2, "b", "a"), version(3, "c", "b"))
    found = line.spans()
    chosen = found.touching(np.array([False, True, False]))
    assert found.identity[chosen].tolist() == [1]


def test_detached_versions_count_as_version_zero():
    line, _ = line_of(version(1), version(1 << 63))
    assert line.numbers().tolist() == [1, 0]


def store_of(*versions: bytes) -> tuple[MemoryStore, list[ManifestName]]:
    store = MemoryStore(f"references-{id(versions)}")
    names = [ManifestName(number, NamingScheme.V2) for number in range(1, len(versions) + 1)]
    for name, data in zip(names, versions, strict=True):
        store.write(name.path, data)
    return store, names


def test_versions_are_read_from_a_store_and_those_that_are_gone_left_out():
    store, names = store_of(*(manifest(number, [fragment(number)]) for number in (1, 2, 3)))
    store.delete(names[1].path)
    references, ticks = References(), []
    references.read(store, "", names, lambda: ticks.append(1))
    assert [one.version for one in references.lines[""].versions] == [1, 3]
    assert len(ticks) == 3
    assert references.knows("data:f3")
    assert references.numbers_of(["data:f1", None, "data:f2"]).tolist() == [0, -1, -1]


def test_a_second_look_is_a_line_of_its_own():
    store, names = store_of(*(manifest(number, [fragment(number)]) for number in (1, 2)))
    references = References()
    references.read(store, "", names[:1])
    references.read(store, "", names[1:])
    assert [line.home for line in references.lines.values()] == ["", ""]


def test_damage_is_raised_or_noted():
    store, names = store_of(manifest(1, [fragment(1)]), b"damaged", manifest(3, [fragment(3)]))
    with pytest.raises(CorruptFileError):
        References().read(store, "", names)
    references = References(tolerant=True)
    references.read(store, "", names)
    line = references.lines[""]
    assert [one.version for one in line.versions] == [1, 3]
    assert [name.version for name, _ in line.damaged] == [2]


@pytest.mark.parametrize("odd", [version(1, flags=MANAGED_BLOBS), version(1, unknown=True)])
def test_what_is_not_understood_wholly_is_refused(odd: VersionFiles):
    _, references = line_of(odd)
    with pytest.raises(NotSupportedError, match="nothing is deleted"):
        check_complete(references)


def test_a_manifest_that_is_listed_and_cannot_be_read_is_damage_one_that_is_gone_is_not() -> None:
    ds = lance_nb.write_dataset(pa.table({"a": [1]}), "memory://gone-manifests/d.lance")
    store = open_store(ds.uri, None)
    name = ManifestName(1, NamingScheme.V2)

    class Refusing:
        """A store that lists the manifest and does not find it."""

        def __getattr__(self, attribute: str) -> Any:
            return getattr(store, attribute)

        def read_tail(self, path: str, _size: int) -> Any:
            raise ObjectNotFoundError(path)

    for home, tolerant, kind in (
        (store, True, memoryview), (store, False, memoryview),
        (Refusing(), True, ObjectNotFoundError), (Refusing(), False, type(None)),
    ):  # fmt: skip
        assert isinstance(file_references._manifest(home, name, tolerant=tolerant), kind)
    store.delete(name.path)
    for tolerant in (True, False):
        assert file_references._manifest(store, name, tolerant=tolerant) is None
