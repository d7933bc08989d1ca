from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.explorer.history import history_outline as outlines
from lance_nb.explorer.history.history_outline import OutlinePoint, history_outline
from tests.support.fake_dataset import FakeDataset, FakeVersion, many_versions, rows


def test_versions_are_read_in_the_order_given() -> None:
    lane = {n: FakeVersion(n, rows(n), size_bytes=10 * n) for n in (1, 2, 5, 9)}
    found = history_outline(FakeDataset({None: lane}), [9, 1, 5], seconds=60)
    assert found.points == (OutlinePoint(9, 9, 90), OutlinePoint(1, 1, 10), OutlinePoint(5, 5, 50))
    assert found.to_json() == {"points": [[9, 9, 90], [1, 1, 10], [5, 5, 50]],
                               "left": [], "most": 256}  # fmt: skip


def test_a_version_that_was_cleaned_up_is_left_out() -> None:
    dataset = many_versions(3)
    del dataset.lanes[None][2]
    found = history_outline(dataset, [1, 2, 3], seconds=60)
    assert [point.version for point in found.points] == [1, 3]
    assert found.left == ()


def test_what_is_not_read_in_time_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(outlines.time, "monotonic", lambda: next(clock))
    dataset = many_versions(9)
    found = history_outline(dataset, [9, 1, 5, 3, 7], seconds=2.5)
    assert [point.version for point in found.points] == [9, 1, 5]
    assert found.left == (3, 7)
    assert dataset.reads == [9, 1, 5]


def test_one_version_is_read_at_the_least() -> None:
    found = history_outline(many_versions(9), [4, 5], seconds=-1)
    assert [point.version for point in found.points] == [4]
    assert found.left == (5,)


def test_an_object_store_is_asked_for_fewer_versions() -> None:
    far = FakeDataset({None: {1: FakeVersion(1, rows(1))}}, uri="s3://bucket/photos.lance")
    assert history_outline(far, [1]).most == outlines.MAX_REMOTE


def test_a_damaged_version_has_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = many_versions(3)
    read = FakeDataset.version_info

    def version_info(self: FakeDataset, version: int, *, with_tags: bool = True) -> FakeVersion:
        if version == 2:
            raise CorruptFileError("_versions/2.manifest", expected="magic bytes")
        return read(self, version, with_tags=with_tags)

    monkeypatch.setattr(FakeDataset, "version_info", version_info)
    found = history_outline(dataset, [1, 2, 3], seconds=60)
    assert found.points[1] == OutlinePoint(2, None, None)
    assert [point.rows for point in found.points] == [50, None, 50]
