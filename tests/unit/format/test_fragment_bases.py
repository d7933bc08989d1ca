"""Base ids of serialized fragments are exchanged, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_bases import with_bases
from tests.support.manifests import fragment


def _with(one: Fragment, base_id: int | None) -> Fragment:
    files = tuple(replace(file, base_id=base_id) for file in one.files)
    deletion = one.deletion_file and replace(one.deletion_file, base_id=base_id)
    return replace(one, files=files, deletion_file=deletion)


def test_ids_are_set_exchanged_and_taken_away() -> None:
    rich = fragment(7, rows=10, deleted=2, files=2)
    bare, zero, other = (_with(rich, number) for number in (None, 0, 5))

    assert with_bases([bare.to_bytes()], {None: 0}) == [zero.to_bytes()]
    assert with_bases([zero.to_bytes()], {0: None}) == [bare.to_bytes()]
    assert with_bases([zero.to_bytes(), other.to_bytes()], {0: 5}) == [other.to_bytes()] * 2
    assert with_bases([bare.to_bytes()], {0: 5}) == [bare.to_bytes()]
