"""What pylance and we have written is whole, whatever was done to it, and says so."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_nb
from lance_nb._pb import table
from tests.support.damages import Damaged, fragments_of, put_fragments
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

SEEDS = 12


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_histories_of_both_libraries_have_no_finding(seed: int, tmp_path: Path) -> None:
    require_pylance()
    from tests.faults.differential.run import play_author
    from tests.faults.differential.sequences import HistoryPlayer, LongAuthor

    player = HistoryPlayer(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pylance's, about its own arguments
        steps, _ = play_author(LongAuthor(seed), player)
    if player.versions:  # else both libraries refused to create it
        report = lance_nb.verify(str(player.root), allow_bases=[str(tmp_path)])
        assert not report.findings, "\n".join([*map(repr, steps), repr(report)])


KINDS = {
    "btree": ("id", "BTREE"), "bitmap": ("kind", "BITMAP"), "labels": ("labels", "LABEL_LIST"),
    "ngram": ("text", "NGRAM"), "zones": ("id", "ZONEMAP"), "bloom": ("text", "BLOOMFILTER"),
    "words": ("text", "INVERTED"), "vector": ("v", "IVF_PQ"), "flat": ("v", "IVF_FLAT"),
}  # fmt: skip


def rows(start: int, count: int) -> pa.Table:
    """Return rows with nulls in every indexed column but the vectors."""
    numbers = np.arange(start, start + count)
    chance = np.random.default_rng(start)
    vectors = pa.array(chance.random(count * 16, np.float32))
    return pa.table(
        {
            "id": pa.array(numbers, mask=numbers % 11 == 5),
            "kind": pa.array([None if n % 7 == 3 else f"k{n % 4}" for n in numbers.tolist()]),
            "labels": pa.array(
                [None if n % 9 == 1 else [f"l{n % 3}"] * (n % 4) for n in numbers.tolist()],
                pa.list_(pa.string()),
            ),
            "text": pa.array([None if n % 8 == 2 else f"word{n % 5} text {n}" for n in numbers]),
            "v": pa.FixedSizeListArray.from_arrays(vectors, 16),
        }
    )


def _delete(ds: Any) -> None:
    ds.delete("id % 5 = 0")


def _update(ds: Any) -> None:
    ds.update({"kind": "'k9'"}, where="id % 6 = 1")


def _append(ds: Any) -> None:
    import lance

    lance.write_dataset(rows(5000, 300), ds.uri, mode="append")


def _optimize(ds: Any) -> None:
    _append(ds)
    ds.checkout_version(ds.latest_version).optimize.optimize_indices()


def _compact(ds: Any) -> None:
    _delete(ds)
    ds.optimize.compact_files(target_rows_per_fragment=100_000)


def _defer(ds: Any) -> None:
    _delete(ds)
    ds.optimize.compact_files(target_rows_per_fragment=100_000, defer_index_remap=True)


def _upsert(ds: Any) -> None:
    (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(rows(100, 50).slice(0, 50))
    )


CHANGES: dict[str, Callable[[Any], None]] = {
    "nothing": lambda _: None, "delete": _delete, "update": _update, "append": _append,
    "optimize": _optimize, "compact": _compact, "upsert": _upsert,
}  # fmt: skip


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool, Path], str]:
    """Copy a dataset with an index of each kind; pylance builds them once, which takes seconds."""
    lance = require_pylance()
    folder = tmp_path_factory.mktemp("indexed")

    @cache
    def built(stable: bool) -> str:
        uri = str(folder / f"{stable}.lance")
        ds = lance.write_dataset(
            rows(0, 1500), uri, max_rows_per_file=500, enable_stable_row_ids=stable
        )
        for name, (column, kind) in KINDS.items():
            if kind.startswith("IVF"):
                more = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
                ds = ds.create_index(column, kind, name=name, num_partitions=2, **more)
            else:
                ds.create_scalar_index(column, kind, name=name)
        return uri

    return lambda stable, path: str(shutil.copytree(built(stable), path / "d.lance"))


@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
@pytest.mark.parametrize("change", [*CHANGES, "defer"])
def test_indices_of_pylance_have_no_finding(
    change: str, stable: bool, tmp_path: Path, indexed: Callable[[bool, Path], str]
) -> None:
    lance = require_pylance()
    if change == "defer" and stable:
        pytest.skip("pylance does not defer the remap of stable row ids")
    uri = indexed(stable, tmp_path)
    ds = lance.dataset(uri)
    (CHANGES | {"defer": _defer})[change](ds)
    found = lance_nb.verify(uri)
    assert not found.findings, found
    assert found.num_indices >= len(KINDS)


@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
def test_rows_that_indices_of_pylance_lack_are_found(stable: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d.lance")
    ds = lance.write_dataset(rows(0, 900), uri, max_rows_per_file=300, enable_stable_row_ids=stable)
    for name in ("btree", "bitmap", "labels"):
        ds.create_scalar_index(*KINDS[name], name=name)
    _append(ds)
    world = Damaged(uri)
    newest = lance_nb.dataset(uri).version

    def cover_all(_: table.Manifest, section: table.IndexSection) -> None:
        for one in section.indices:
            one.fragment_bitmap = BitMap([0, 1, 2, 3]).serialize()

    world.edit(cover_all, newest)
    found = [one for one in lance_nb.verify(uri).findings if one.code == "index-rows-missing"]
    assert {one.message.split("'")[1] for one in found} == {"btree", "bitmap"}
    assert all("300 rows are missing" in one.message for one in found)


def test_an_index_that_names_rows_that_never_were_is_found(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d.lance")
    ds = lance.write_dataset(rows(0, 900), uri, max_rows_per_file=300)
    wanted = ("btree", "bitmap", "labels", "zones", "bloom", "words", "flat")
    for name in wanted:
        column, kind = KINDS[name]
        if kind.startswith("IVF"):
            ds = ds.create_index(column, kind, name=name, num_partitions=2)
        else:
            ds.create_scalar_index(column, kind, name=name)
    world = Damaged(uri)
    newest = lance_nb.dataset(uri).version

    def fewer_rows(message: table.Manifest, _: table.IndexSection) -> None:
        fragments = fragments_of(message)
        fragments[1].physical_rows = 200  # as if the file had been another
        put_fragments(message, fragments)

    world.edit(fewer_rows, newest)
    found = lance_nb.verify(uri).findings
    unknown = {one.message.split("'")[1] for one in found if one.code == "index-rows-unknown"}
    assert unknown == set(wanted)


@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
def test_an_index_of_other_values_than_the_column_is_found(stable: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d.lance")
    ds = lance.write_dataset(rows(0, 900), uri, max_rows_per_file=300, enable_stable_row_ids=stable)
    for name in ("bitmap", "labels", "zones"):
        ds.create_scalar_index(*KINDS[name], name=name)
    other = str(tmp_path / "other.lance")
    shifted = rows(0, 900).slice(1)
    shifted = pa.concat_tables([shifted, rows(900, 1)])  # each value one row before
    lance.write_dataset(shifted, other, max_rows_per_file=300, enable_stable_row_ids=stable)
    names = [sorted(Path(one, "data").iterdir()) for one in (uri, other)]
    order = [[one.metadata.files[0].path for one in lance.dataset(at).get_fragments()]
             for at in (uri, other)]  # fmt: skip
    assert [len(one) for one in names] == [3, 3]
    for mine, theirs in zip(*order, strict=True):
        data = Path(other, "data", theirs).read_bytes()
        Path(uri, "data", mine).write_bytes(data)
    sizes = {one.name: one.stat().st_size for one in Path(uri, "data").iterdir()}

    def resize(message: table.Manifest, _: table.IndexSection) -> None:
        fragments = fragments_of(message)
        for one in fragments:
            one.files[0].file_size_bytes = sizes[one.files[0].path]
        put_fragments(message, fragments)

    Damaged(uri).edit(resize, *range(1, lance_nb.dataset(uri).version + 1))

    found = lance_nb.verify(uri).findings

    assert {(one.code, one.message.split("'")[1]) for one in found} == {
        ("index-values-wrong", name) for name in ("bitmap", "labels", "zones")
    }, found


@pytest.mark.parametrize("name", ["zones", "bloom"])
def test_a_row_in_no_zone_is_found(name: str, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "d.lance")
    ds = lance.write_dataset(rows(0, 900), uri, max_rows_per_file=300)
    ds.create_scalar_index(*KINDS[name], name=name)
    lance.write_dataset(rows(900, 10), uri, mode="append")

    def cover_all(_: table.Manifest, section: table.IndexSection) -> None:
        for one in section.indices:
            one.fragment_bitmap = BitMap([0, 1, 2, 3]).serialize()

    Damaged(uri).edit(cover_all, lance_nb.dataset(uri).version)

    (found,) = lance_nb.verify(uri).findings

    assert found.code == "index-rows-missing"
    assert "row 0 of fragment 3 is in no zone" in found.message
