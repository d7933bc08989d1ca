"""A dataset that needs a newer reader gives a card that says so, not a traceback."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import lance_nb
from lance_nb.errors import NotSupportedError
from lance_nb.format.manifest import parse_manifest

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "pylance_14_0_2" / "empty.lance"


def test_an_unknown_reader_flag_is_named_on_the_card(tmp_path: Path) -> None:
    copy = tmp_path / "newer.lance"
    shutil.copytree(GOLDEN, copy)
    for path in (copy / "_versions").glob("*.manifest"):
        manifest = parse_manifest(path.read_bytes(), str(path))
        path.write_bytes(replace(manifest, reader_feature_flags=1 << 20).to_bytes())

    explorer = lance_nb.explore(copy)

    assert isinstance(explorer.error, NotSupportedError)
    assert "bit 20" in explorer.picture().text
