"""The demo dataset: a catalogue of street photographs with an instructive history.

::

    DEMO = demo_dataset("data/demo.lance")    writes it if it does not exist, in a few seconds
    ds = demo_copy("data/mine.lance", DEMO)   main with all its versions, to be changed freely

Layout: main has 26 versions, four tags, and three branches with commits of their own::

    1-3    imports                      raw-import is 2
    4-13   cleaned, spelling corrected, columns added, renamed and dropped, compacted
           training-v1 is 9; branch relabel starts at 9, augmented at 13
    14-20  checked captions, weekly imports; the one of week 45 (``BAD_VERSION``) is wrong: its
           scores are percentages, and a fifth of its labels are missing
    21-26  deletions, settings, a jury's scores, the newest rows in small files
           week-47 is 20, reviewed is 26; branch captions starts at 22

Every commit has an author and a message. Rows have stable ids, so their history can be shown.

Limits: about 50,000 rows and 40 MB. A branch records the absolute path of its dataset, so the
dataset is written in place instead of being renamed at the end; a failed run removes what it wrote.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from lance_nb.dataset import LanceDataset, dataset
from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.magic.demo_photos import MISSPELT, PhotoSource
from lance_nb.magic.provenance import provenance

SEED = 20_240_517
# Created last: a dataset that has this tag is complete (the Makefile looks for it as well).
LAST_TAG = "reviewed"
BAD_VERSION = 16
BAD_ROWS = 3_500
TITLE = {"title": "Street photographs", "licence": "CC0", "owner": "demo data of lance_nb"}
INES, TOM, MARA = "Ines", "Tom", "Mara"


def ensure(path: Path, *, force: bool = False, is_ours: bool = False) -> str:
    """Write the dataset unless it exists; return one line about what was done.

    ``is_ours``: replace an incomplete one without ``force``. Raises InvalidInputError rather than
    delete something that is no dataset.
    """
    if path.exists() and not force and is_complete(path):
        return f"{path} already exists (--force replaces it)"
    if path.exists():
        if not force and not is_ours:
            raise InvalidInputError(
                f"{path} exists and is not a complete demo dataset; --force replaces it"
            )
        remove(path)
    dataset = write(path)
    return (
        f"wrote {path}: {dataset.count_rows():,} rows, {len(dataset.version_numbers())} versions, "
        f"{len(dataset.tags.names())} tags, {len(dataset.branches.names())} branches"
    )


def is_complete(path: Path) -> bool:
    """Whether an earlier run has completed ``path``."""
    return (path / "_refs" / "tags" / f"{LAST_TAG}.json").is_file()


def remove(path: Path) -> None:
    """Delete the dataset at ``path``. Raises InvalidInputError for any other folder."""
    if not path.is_dir() or (any(path.iterdir()) and not (path / "_versions").is_dir()):
        raise InvalidInputError(
            f"{path} is not a Lance dataset, so it is not replaced; choose another path"
        )
    shutil.rmtree(path)


def write(path: Path, seed: int = SEED) -> LanceDataset:
    """Write the whole demo dataset into ``path``, which must not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = PhotoSource.seeded(seed)
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, path, ignore_errors=True)
        with _commit_as(INES, "Import the spring archive"):
            dataset = write_dataset(source.take(10_000), str(path), enable_stable_row_ids=True)
        _write_imports(dataset, source)
        _write_columns(dataset, source)
        _write_clean_up(dataset)
        _write_branches(dataset, source)
        _write_weeks(dataset, source)
        _write_end(dataset, source)
        undo.pop_all()
    return dataset


def _write_imports(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 2 to 5: the raw data comes in and is cleaned."""
    with _commit_as(INES, "Import the summer archive"):
        dataset.insert(source.take(9_000))
    dataset.tags.create("raw-import", dataset.version)
    with _commit_as(TOM, "Import the phone pictures"):
        dataset.insert(source.take(6_000))
    with _commit_as(MARA, "Drop what is out of focus"):
        dataset.delete("score < 0.2")
    with _commit_as(MARA, "Correct the spelling of bicycle"):
        dataset.update({"label": "'bicycle'"}, where="label = 'bycicle'")


def _write_columns(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 6 to 11: a column stays under a better name, another comes and goes."""
    with _commit_as(TOM, "Add the ratio of width to height"):
        dataset.add_columns({"ratio": "CAST(width AS FLOAT) / CAST(height AS FLOAT)"})
    with _commit_as(INES, "Import the autumn archive"):
        dataset.insert(correct_labels(with_ratio(source.take(5_000), "ratio")))
    with _commit_as(MARA, "Say what this is"):
        dataset.update_metadata(TITLE)
    with _commit_as(TOM, "Call the ratio by its name"):
        dataset.alter_columns({"path": "ratio", "name": "aspect_ratio"})
    dataset.tags.create("training-v1", dataset.version)
    with _commit_as(TOM, "Try a flag for wide pictures"):
        dataset.add_columns({"is_wide": "aspect_ratio > 1.4"})
    with _commit_as(TOM, "The flag is not needed"):
        dataset.drop_columns(["is_wide"])


def _write_clean_up(dataset: LanceDataset) -> None:
    """Versions 12 and 13."""
    with _commit_as(MARA, "The film scans of the first batch are upside down"):
        dataset.delete("meta.camera = 'Nikon FM2' AND score < 0.6")
    with _commit_as(TOM, "Join the archives into larger fragments"):
        dataset.optimize.compact_files(target_rows_per_fragment=15_000)


def _write_branches(dataset: LanceDataset, source: PhotoSource) -> None:
    """Make two branches that go their own way."""
    relabel = dataset.create_branch("relabel", "training-v1")
    with _commit_as(MARA, "Cats and dogs are pets"):
        relabel.update({"label": "'pet'"}, where="label = 'cat' OR label = 'dog'")
    with _commit_as(MARA, "Drop the weaker windows"):
        relabel.delete("label = 'window' AND score < 0.4")
    augmented = dataset.create_branch("augmented", dataset.version)
    for count, what in ((600, "Add mirrored pictures"), (400, "Add cropped pictures")):
        with _commit_as(TOM, what):
            augmented.insert(correct_labels(with_ratio(source.take(count))))


def _write_weeks(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 14 to 20: captions are checked, and imported every week; one week went wrong."""
    checked = dataset.to_table(filter="id >= 2000 AND id < 2200").combine_chunks()
    with _commit_as(INES, "Captions checked by hand, and some late pictures"):
        late = correct_labels(with_ratio(source.take(100)))
        _upsert(dataset, pa.concat_tables([_with_checked_captions(checked), late]))
    with _commit_as(INES, "Import week 44"):
        dataset.insert(correct_labels(with_ratio(source.take(4_000))))
    with _commit_as(TOM, "Import week 45 with the new script"):
        dataset.insert(with_bad_import(correct_labels(with_ratio(source.take(BAD_ROWS)))))
    with _commit_as(INES, "Import week 46"):
        dataset.insert(correct_labels(with_ratio(source.take(4_000))))
    with _commit_as(MARA, "Poplars by the canal are the landmark"):
        dataset.update(
            {"caption": "concat(caption, ', the landmark')"},
            where="caption LIKE '%poplars by the canal%' AND id < 20000",
        )
    with _commit_as(TOM, "Add the size in megapixels"):
        dataset.add_columns({"megapixels": "CAST(width * height / 1000000 AS FLOAT)"})
    with _commit_as(INES, "Import week 47"):
        dataset.insert(correct_labels(_with_megapixels(source.take(5_000))))
    dataset.tags.create("week-47", dataset.version)


def _write_end(dataset: LanceDataset, source: PhotoSource) -> None:
    """Versions 21 to 26, and the third branch."""
    with _commit_as(MARA, "People asked for their pictures to go"):
        dataset.delete("id >= 21000 AND id < 21040 OR label = 'street' AND score < 0.3")
    with _commit_as(TOM, "The photo desk looks after it"):
        dataset.update_config({"team": "photo desk"})
    captions = dataset.create_branch("captions", dataset.version)
    with _commit_as(MARA, "Captions in capitals, as an experiment"):
        captions.update({"caption": "upper(caption)"}, where="label = 'cat'")
    with _commit_as(MARA, "How long they are"):
        captions.add_columns({"caption_length": "CAST(length(caption) AS INT)"})
    jury = dataset.to_table(filter="id >= 5000 AND id < 6500").combine_chunks()
    with _commit_as(INES, "Scores of the second jury"):
        _upsert(dataset, _with_lower_scores(jury))
    with _commit_as(TOM, "Say what a score is"):
        dataset.update_field_metadata({"score": {"description": "0 to 1, by a jury of three"}})
    with _commit_as(
        INES, "Import the winter archive"
    ):  # in small files, as many small jobs write them
        dataset.insert(correct_labels(_with_megapixels(source.take(4_000))), max_rows_per_file=800)
    with _commit_as(MARA, "Nobody will describe these any more"):
        dataset.delete("caption IS NULL AND score < 0.5")
    dataset.tags.create(LAST_TAG, dataset.version)


# --- rows -----------------------------------------------------------------------------------------


def correct_labels(photos: pa.Table) -> pa.Table:
    """Return ``photos`` with every label correct_labels right."""
    from pyarrow import compute

    labels = photos["label"]
    for label, wrong in MISSPELT.items():
        labels = compute.if_else(compute.equal(labels, wrong), label, labels)
    return _with(photos, "label", labels)


def with_ratio(photos: pa.Table, name: str = "aspect_ratio") -> pa.Table:
    """Return ``photos`` with their width to height ratio as column ``name``."""
    ratio = photos["width"].to_numpy() / photos["height"].to_numpy()
    return photos.append_column(name, pa.array(ratio.astype(np.float32)))


def with_bad_import(photos: pa.Table) -> pa.Table:
    """Return ``photos`` as a faulty script imports them: scores in percent, labels missing."""
    from pyarrow import compute

    is_fifth = compute.less(compute.bit_wise_and(photos["id"], 63), 13)
    labels = compute.if_else(is_fifth, pa.scalar(None, pa.string()), photos["label"])
    scores = compute.cast(compute.round(compute.multiply(photos["score"], 100)), pa.float32())
    return _with(_with(photos, "label", labels), "score", scores)


def _with_checked_captions(photos: pa.Table) -> pa.Table:
    from pyarrow import compute

    captions = compute.fill_null(photos["caption"], "Untitled")
    words = compute.binary_join_element_wise(captions, "(checked)", " ")
    return _with(photos, "caption", words)


def _with_lower_scores(photos: pa.Table) -> pa.Table:
    from pyarrow import compute

    scores = compute.cast(compute.multiply(photos["score"], 0.9), pa.float32())
    return _with(photos, "score", scores)


def _with_megapixels(photos: pa.Table) -> pa.Table:
    area = photos["width"].to_numpy() * photos["height"].to_numpy() // 1_000_000
    return with_ratio(photos).append_column("megapixels", pa.array(area.astype(np.float32)))


def _with(photos: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    at = photos.schema.get_field_index(name)
    return photos.set_column(at, photos.schema.field(at), values)


def _upsert(dataset: LanceDataset, photos: pa.Table) -> None:
    verb = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    verb.execute(photos)
    dataset.checkout_latest()


@contextmanager
def _commit_as(author: str, message: str) -> Iterator[None]:
    """Let the commits of a block say who made them and why."""
    with provenance.context(author=author, message=message, notebook=False):
        yield


__all__ = ["demo_copy", "demo_dataset"]


def demo_dataset(path: str | os.PathLike[str] = "data/demo.lance") -> str:
    """Write the demo dataset unless it exists, and return its path.

    Raises InvalidInputError if something else is at ``path``.
    """
    ensure(Path(path))
    return os.fspath(path)


def demo_copy(
    path: str | os.PathLike[str], source: str | os.PathLike[str] = "data/demo.lance"
) -> LanceDataset:
    """Copy main of the demo dataset with its whole history and tags; an older copy is replaced.

    Branches are not copied: their versions refer to the source dataset by its absolute path. Raises
    InvalidInputError if something else is at ``path``.
    """
    place = Path(path)
    if place.exists():
        remove(place)
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("tree", "branches"))
    return dataset(place)
