"""What every external manifest store must do. A store's own test file provides ``entries``."""

from __future__ import annotations

import pickle
import threading
import uuid

import pytest

from lance_nb.errors import NotSupportedError, ObjectExistsError, ObjectNotFoundError
from lance_nb.transactions.external.base import ExternalManifestStore, ManifestEntry

WRITERS = 8
ROUNDS = 10


def entry(version: int, name: str = "", size: int | None = 100) -> ManifestEntry:
    return ManifestEntry(version, f"data/t/_versions/{version}.manifest{name}", size)


class ManifestStoreTests:
    """``entries`` is a store; ``base`` a key that nobody has used."""

    @pytest.fixture
    def entries(self) -> ExternalManifestStore:
        raise NotImplementedError

    @pytest.fixture
    def base(self) -> str:
        return f"data/näme {uuid.uuid4().hex}"

    def test_what_was_put_is_found(self, entries: ExternalManifestStore, base: str):
        assert entries.get(base, 1) is None
        assert entries.latest(base) is None
        first = ManifestEntry(1, "data/t/_versions/1.manifest-x", 434, '"tag"')
        entries.put_if_not_exists(base, first)
        assert entries.get(base, 1) == first
        assert entries.latest(base) == first
        assert entries.get(base, 2) is None
        assert entries.latest(base + "/tree/b") is None

    def test_the_latest_is_the_highest_number(self, entries: ExternalManifestStore, base: str):
        for version in (9, 10, 2, 11, 3):
            entries.put_if_not_exists(base, entry(version))
        found = entries.latest(base)
        assert found == entry(11)
        assert entries.get(base, 2) == entry(2)

    def test_a_version_is_put_once(self, entries: ExternalManifestStore, base: str):
        entries.put_if_not_exists(base, entry(1, "-first"))
        with pytest.raises(ObjectExistsError):
            entries.put_if_not_exists(base, entry(1, "-second"))
        assert entries.get(base, 1) == entry(1, "-first")

    def test_an_entry_is_changed_only_if_it_is_there(
        self, entries: ExternalManifestStore, base: str
    ):
        with pytest.raises(ObjectNotFoundError):
            entries.put_if_exists(base, entry(1))
        assert entries.get(base, 1) is None
        entries.put_if_not_exists(base, entry(1, "-staged", None))
        entries.put_if_exists(base, entry(1, "", 7))
        assert entries.get(base, 1) == entries.latest(base) == entry(1, "", 7)

    def test_a_dataset_is_forgotten_whole_and_alone(
        self, entries: ExternalManifestStore, base: str
    ):
        for version in range(1, 6):
            entries.put_if_not_exists(base, entry(version))
        entries.put_if_not_exists(f"{base}2", entry(1))
        entries.forget(base)
        assert entries.latest(base) is None
        assert entries.get(base, 3) is None
        assert entries.latest(f"{base}2") == entry(1)
        entries.put_if_not_exists(base, entry(1, "-again"))
        assert entries.latest(base) == entry(1, "-again")

    def test_of_racing_writers_one_puts(self, entries: ExternalManifestStore, base: str):
        for version in range(1, ROUNDS + 1):
            barrier = threading.Barrier(WRITERS)
            won: list[int] = []

            def race(number: int, version=version, barrier=barrier, won=won) -> None:
                barrier.wait(30)
                try:
                    entries.put_if_not_exists(base, entry(version, f"-{number}"))
                except ObjectExistsError:
                    return
                won.append(number)

            threads = [threading.Thread(target=race, args=(one,)) for one in range(WRITERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(won) == 1
            assert entries.latest(base) == entry(version, f"-{won[0]}")

    def test_the_place_is_shown_and_a_pickle_refused(self, entries: ExternalManifestStore):
        assert entries.place
        assert entries.place in repr(entries)
        if hasattr(entries, "_client"):
            with pytest.raises(NotSupportedError):
                pickle.dumps(entries)
