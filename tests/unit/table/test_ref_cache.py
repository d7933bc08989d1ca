from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.storage.base import Listing, ObjectInfo
from lance_nb.storage.registry import open_store
from lance_nb.table.refs import RefCache
from tests.golden.opening import WatchedStore

COUNT = 40


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refs") / "tagged.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": [1, 2]}), path)
    dataset.tags.create("tag-0", 1)
    dataset.create_branch("side")
    first = path / "_refs" / "tags" / "tag-0.json"
    for at in range(1, COUNT):
        first.with_name(f"tag-{at}.json").write_bytes(first.read_bytes())
    _let_settle(path)
    return path


def _let_settle(path: Path) -> None:
    """Make the files older than what the clock of a file cannot tell apart."""
    earlier = time.time() - 60
    for file in (path / "_refs").rglob("*.json"):
        os.utime(file, (earlier, earlier))


def test_a_tag_is_read_once_for_as_long_as_its_file_stays(tagged):
    store = WatchedStore(open_store(tagged))
    found = RefCache(store)
    assert len(found.tags()) == COUNT
    assert _tags_read(store) == COUNT
    assert found.tags() == found.readable_tags()
    assert _tags_read(store) == COUNT


def test_describing_versions_reads_no_tag_again(tagged):
    dataset = lance_nb.dataset(tagged)
    watched = WatchedStore(dataset.opened[0].root)
    object.__setattr__(dataset.opened[0], "root", watched)
    assert dataset.version_info(1).tags == dataset.history()[-1].tags
    assert _tags_read(watched) == COUNT
    dataset.history()
    dataset.version_info(1)
    dataset.tags.list()
    assert _tags_read(watched) == COUNT


def _tags_read(store: WatchedStore) -> int:
    return sum(times for path, times in store.reads.items() if path.startswith("_refs/tags"))


def test_what_others_do_to_tags_is_seen_at_once(tagged):
    dataset = lance_nb.dataset(tagged)
    assert dataset.tags.list()["tag-3"]["version"] == 1
    file = tagged / "_refs" / "tags" / "tag-3.json"
    plain = file.read_bytes()
    for version in (2, 3):  # of the same size, one right after the other
        file.write_text(json.dumps(json.loads(plain) | {"version": version}))
        assert dataset.tags.list()["tag-3"]["version"] == version
    file.with_name("new.json").write_bytes(plain)
    assert "new" in dataset.tags.list()
    file.with_name("new.json").unlink()
    assert "new" not in dataset.tags.list()
    file.write_bytes(b"{")
    with pytest.raises(CorruptFileError):
        dataset.tags.list()
    assert len(dataset.tags.readable()) == COUNT - 1
    file.write_bytes(plain)
    assert dataset.tags.list()["tag-3"]["version"] == 1


class _Untold(WatchedStore):
    """A store whose listings tell no e-tags."""

    def list(self, prefix: str) -> Listing:
        found = self._store.list(prefix)
        return [ObjectInfo(one.name, one.size_bytes, one.modified) for one in found]


def test_where_the_store_tells_no_state_every_record_is_read_again(tagged):
    store = _Untold(open_store(tagged))
    found = RefCache(store)
    found.branches()
    found.branches()
    assert store.reads.total() == 2


def test_a_listing_marks_a_tag_that_was_written_again_and_no_other(tagged):
    store = WatchedStore(open_store(tagged))
    found = RefCache(store)
    before = found.tag_marks()
    assert found.tag_marks() == before
    lance_nb.dataset(tagged).tags.update("tag-1", 1)  # written again, at another time
    after = found.tag_marks()
    assert {name for name in before if before[name] != after[name]} == {"tag-1"}
    assert _tags_read(store) == 0


class _FarStore(WatchedStore):
    scheme = "s3"


@pytest.mark.parametrize("kind", [WatchedStore, _FarStore], ids=["near", "far"])
def test_unfinished_branches_are_found_and_far_away_ones_asked_for_once(kind, tmp_path):
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path / "t")
    for name in ("half", "whole"):
        dataset.create_branch(name)
    shutil.rmtree(tmp_path / "t" / "tree" / "half")
    found = RefCache(kind(open_store(tmp_path / "t")))
    branches = found.branches()
    assert found.unfinished(branches) == found.unfinished(branches) == {"half"}
    (tmp_path / "t" / "tree" / "whole" / "_versions" / "latest_version_hint.json").unlink()
    assert found.unfinished(branches) == {"half"}  # the hint spares a listing, no more
    shutil.rmtree(tmp_path / "t" / "tree" / "whole")
    assert found.unfinished(branches) == ({"half"} if kind is _FarStore else {"half", "whole"})
