"""A dataset in files whose every name and value is a text that would like to be markup."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

import lance_nb
from tests.support.markup_payloads import PAYLOADS
from tests.support.requirements import require_pylance

EVIL = "<img src=x onerror=window.__x=1>"
VALUES = [text.replace("\0", "") for text in PAYLOADS]
# No name of a column has a dot; what would run still runs.
COLUMNS = [text.replace("window.__x", "window['__x']").replace(".", "_") for text in VALUES]


def hostile_dataset(folder: Path) -> Any:
    """Write it: folder, columns, members, values, metadata, messages, properties, settings, an
    index, tags, branches and a data file, all by hostile names."""
    path = folder / f"{EVIL}.lance"
    member = pa.array([{EVIL: {text: [text]}} for text in VALUES[:1]] * len(VALUES))
    table = pa.table({"id": range(len(VALUES)), "deep": member, **dict.fromkeys(COLUMNS, VALUES)})
    lance_nb.write_dataset(
        table.replace_schema_metadata({text: text for text in VALUES}),
        path,
        enable_stable_row_ids=True,
        commit_message=EVIL,
        transaction_properties={text: text for text in VALUES},
    )
    dataset = lance_nb.dataset(path)
    dataset.update({COLUMNS[0]: f"'{EVIL}'"}, where="id < 3")
    dataset.update_config({text: text for text in VALUES})
    dataset.tags.create("t", 1)
    dataset.tags.replace_metadata("t", {text: text for text in VALUES})
    dataset.create_branch("b")
    dataset.branches.replace_metadata("b", {"note": EVIL})
    refs = path / "_refs"
    for text in VALUES:
        name = quote(text, safe="")
        shutil.copy(refs / "tags" / "t.json", refs / "tags" / f"{name}.json")
        if not {"/", "\\"} & set(text):  # the folder of a branch has its name
            shutil.copy(refs / "branches" / "b.json", refs / "branches" / f"{name}.json")
            shutil.copytree(path / "tree" / "b", path / "tree" / text)
    require_pylance().dataset(str(path)).create_scalar_index("id", "BTREE", name=EVIL)
    return _with_hostile_file(lance_nb.dataset(path), path)


def _with_hostile_file(dataset: Any, path: Path) -> Any:
    """Append rows whose data file has a hostile name."""
    fragment = lance_nb.write_dataset(
        dataset.to_table(limit=5), path.parent / "other.lance"
    ).get_fragments()[0]
    (file,) = fragment.metadata.files
    shutil.copy(path.parent / "other.lance" / "data" / file.path, path / "data" / f"{EVIL}.lance")
    own = dataset.get_fragments()[0].metadata.files[0]
    moved = replace(own, path=f"{EVIL}.lance", file_size_bytes=file.file_size_bytes)
    made = replace(fragment.metadata, files=(moved,))
    operation = lance_nb.LanceOperation.Append([made])
    return lance_nb.LanceDataset.commit(path, operation, dataset.version, commit_message=VALUES[1])
