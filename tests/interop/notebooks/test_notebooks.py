"""The notebooks run on a clean kernel, offline and without Java, and show what is saved in them.

They run in a folder of their own; the demo dataset that they share is as it was afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.support.notebooks import (
    FOLDER,
    NOTEBOOKS,
    as_saved,
    execute,
    kinds,
    offline_without_java,
    text_of,
)

pytestmark = pytest.mark.slow
BY_NAME = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda one: one.stem)


def files_of(folder: Path) -> dict[str, int]:
    return {str(one): one.stat().st_mtime_ns for one in folder.rglob("*") if one.is_file()}


@BY_NAME
def test_it_runs_and_its_saved_outputs_are_of_the_kinds_that_it_makes(
    path: Path, demo: Path, tmp_path: Path
) -> None:
    work = demo.parent.parent
    before = files_of(demo)
    made = execute(path, work, offline_without_java(tmp_path))

    assert kinds(as_saved(made, work)) == kinds(nbformat.read(path, as_version=4)), (
        "run make notebooks"
    )
    assert files_of(demo) == before
    if path.stem == "07_spark":
        assert "skipped: Spark needs Java" in text_of(made)


@BY_NAME
def test_it_is_saved_as_people_read_it(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)

    assert notebook.cells[0].source.startswith("# ")
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert path.stat().st_size < 400_000  # pictures of views are inside
    counts = [one.execution_count for one in notebook.cells if one.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run make notebooks"
    said = text_of(notebook)
    assert not re.search(r"/(tmp|home|root|Users|work)/", said)
    assert "\x1b[" not in said


def test_the_nine_are_there_and_the_tour_leads_to_the_others() -> None:
    assert [one.stem[:2] for one in NOTEBOOKS] == [f"0{at}" for at in range(1, 10)]
    last = nbformat.read(NOTEBOOKS[0], as_version=4).cells[-1].source
    links = re.findall(r"\((\w+\.ipynb)\)", last)
    assert links == [one.name for one in NOTEBOOKS[1:]]
    for path in NOTEBOOKS:
        for link in re.findall(r"\((\w+\.ipynb)\)", path.read_text()):
            assert (FOLDER / link).is_file()
