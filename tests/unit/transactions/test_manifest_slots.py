from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import CorruptFileError, ObjectExistsError, ObjectNotFoundError
from lance_nb.format.layout import DETACHED_BIT, ManifestName, NamingScheme, manifest_path
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.manifest_slots import StoreSlots


@pytest.fixture
def slots() -> StoreSlots:
    return StoreSlots(MemoryStore(uuid.uuid4().hex))


def test_an_empty_folder_has_no_versions(slots: StoreSlots):
    assert slots.latest() is None
    assert slots.list_names() == []


@pytest.mark.parametrize("scheme", NamingScheme)
def test_what_is_created_is_listed_found_and_read(slots: StoreSlots, scheme: NamingScheme):
    for version in (1, 2, 10):
        slots.create(ManifestName(version, scheme), b"m%d" % version, "u")
    assert [one.version for one in slots.list_names()] == [1, 2, 10]
    assert slots.latest() == ManifestName(10, scheme)
    assert bytes(slots.read(ManifestName(2, scheme))) == b"m2"


def test_a_slot_is_created_once(slots: StoreSlots):
    name = ManifestName(1, NamingScheme.V2)
    slots.create(name, b"first", "u")
    with pytest.raises(ObjectExistsError):
        slots.create(name, b"second", "v")
    assert bytes(slots.read(name)) == b"first"


def test_a_detached_version_is_read_but_not_listed(slots: StoreSlots):
    name = ManifestName(DETACHED_BIT | 7, NamingScheme.V2)
    slots.create(name, b"aside", "u")
    assert bytes(slots.read(name)) == b"aside"
    assert slots.home.list_names("_versions") == [f"d{DETACHED_BIT | 7}.manifest"]
    assert slots.latest() is None


def test_a_missing_version_is_told(slots: StoreSlots):
    with pytest.raises(ObjectNotFoundError):
        slots.read(ManifestName(1, NamingScheme.V2))


def test_leftovers_are_no_versions(slots: StoreSlots):
    for name in ("1.manifest#1", ".tmp-abc", "2.manifest-uuid", "latest_version_hint.json"):
        slots.home.write(f"_versions/{name}", b"")
    assert slots.latest() is None


def test_mixed_names_are_damage(slots: StoreSlots):
    for scheme in NamingScheme:
        slots.home.write(manifest_path(1, scheme), b"")
    with pytest.raises(CorruptFileError, match="naming scheme"):
        slots.latest()
