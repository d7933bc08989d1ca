"""Writing the demo dataset around its rows; the whole of it is counted in tests/interop."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.magic import demo
from lance_nb.magic.demo_photos import PhotoSource


def test_a_complete_dataset_is_left_alone(tmp_path: Path) -> None:
    tag = tmp_path / "_refs" / "tags" / f"{demo.LAST_TAG}.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{}")

    assert "already exists" in demo.ensure(tmp_path)
    assert tag.exists()


def test_a_folder_that_is_no_dataset_is_never_deleted(tmp_path: Path) -> None:
    keep = tmp_path / "thesis.txt"
    keep.write_text("years of work")

    for options in ({}, {"force": True}, {"is_ours": True}):
        with pytest.raises(InvalidInputError, match=r"not a (Lance|complete)"):
            demo.ensure(tmp_path, **options)
    assert keep.exists()


def test_a_run_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    take = PhotoSource.take
    monkeypatch.setattr(demo, "_write_imports", full)
    monkeypatch.setattr(PhotoSource, "take", lambda self, count: take(self, min(count, 20)))
    with pytest.raises(OSError, match="disk full"):
        demo.write(tmp_path / "demo.lance")
    assert not (tmp_path / "demo.lance").exists()


def test_labels_are_spelt_right_and_the_bad_ingest_is_wrong() -> None:
    photos = PhotoSource.seeded(3).take(200)
    assert "bycicle" in photos["label"].to_pylist()
    right = demo.correct_labels(photos)
    assert "bycicle" not in right["label"].to_pylist()
    assert "bicycle" in right["label"].to_pylist()

    wrong = demo.with_bad_import(right)
    assert wrong.schema == photos.schema
    assert 0 < wrong["label"].null_count < 100
    scores = [one for one in wrong["score"].to_pylist() if one is not None]
    assert min(scores) > 1
    assert max(scores) <= 100
