"""The demo dataset's rows and command line; what pylance makes of it is tests/interop's."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.house.source import ROOT


@pytest.fixture(scope="module")
def demo_data() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_data", ROOT / "notebooks" / "demo_data.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo_data"] = module
    spec.loader.exec_module(module)
    return module


def test_same_seed_gives_the_same_photos(demo_data: ModuleType) -> None:
    first = demo_data.PhotoSource.seeded(3).take(50)

    assert first.equals(demo_data.PhotoSource.seeded(3).take(50))
    assert not first.equals(demo_data.PhotoSource.seeded(4).take(50))


def test_photos_go_on_where_the_last_ones_ended(demo_data: ModuleType) -> None:
    source = demo_data.PhotoSource.seeded(3)
    ids = source.take(30)["id"].to_pylist() + source.take(20)["id"].to_pylist()

    assert ids == list(range(1, 51))


def test_photos_have_gaps_where_real_ones_have(demo_data: ModuleType) -> None:
    photos = demo_data.PhotoSource.seeded(3).take(2000)

    for name in ("caption", "score", "tags", "meta"):
        assert 0 < photos[name].null_count < 1000, name
    assert photos["id"].null_count == photos["embedding"].null_count == 0
    assert [] in photos["tags"].to_pylist()
    photos.validate(full=True)


def test_embeddings_are_unit_vectors(demo_data: ModuleType) -> None:
    embedding = demo_data.PhotoSource.seeded(3).take(20)["embedding"].combine_chunks()
    vectors = embedding.flatten().to_numpy().reshape(20, demo_data.EMBEDDING_DIM)

    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_thumbnail_is_a_png_with_true_checksums(demo_data: ModuleType) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    image = demo_data.png(pixels)

    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    rest, chunks = image[8:], {}
    while rest:
        size = int.from_bytes(rest[:4], "big")
        kind, body = rest[4:8], rest[8 : 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(rest[8 + size : 12 + size], "big")
        chunks[kind], rest = body, rest[12 + size :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert chunks[b"IHDR"][:8] == (3).to_bytes(4, "big") + (2).to_bytes(4, "big")
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(2, 10)
    assert not rows[:, 0].any()
    assert (rows[:, 1:].reshape(2, 3, 3) == pixels).all()


def test_complete_dataset_is_left_alone(
    demo_data: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = tmp_path / "_refs" / "tags" / f"{demo_data.LAST_TAG}.json"
    tag.parent.mkdir(parents=True)
    tag.write_text("{}")

    demo_data.main([str(tmp_path)])

    assert "there already" in capsys.readouterr().out
    assert tag.exists()


def test_folder_that_is_no_dataset_is_never_deleted(demo_data: ModuleType, tmp_path: Path) -> None:
    keep = tmp_path / "thesis.txt"
    keep.write_text("years of work")

    with pytest.raises(SystemExit, match="not a Lance dataset"):
        demo_data.remove(tmp_path)
    assert keep.exists()


def test_missing_pylance_is_said_before_anything_is_touched(
    demo_data: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lance", None)
    (tmp_path / "_versions").mkdir()

    with pytest.raises(SystemExit, match="lance-nb\\[lab\\]"):
        demo_data.main([str(tmp_path), "--force"])
    assert (tmp_path / "_versions").exists()


def test_failed_run_leaves_nothing_behind(
    demo_data: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lance", ModuleType("lance"))
    target = tmp_path / "demo.lance"

    def write(path: Path) -> None:
        path.mkdir()
        raise OSError("disk full")

    monkeypatch.setattr(demo_data, "write", write)
    with pytest.raises(OSError, match="disk full"):
        demo_data.main([str(target)])
    assert not target.exists()


def test_makefile_looks_for_the_tag_that_is_made_last(demo_data: ModuleType) -> None:
    assert f"_refs/tags/{demo_data.LAST_TAG}.json" in (ROOT / "Makefile").read_text()
