"""Every verb that writes a local dataset: what it needs, and what may be seen half-way.

Each acts on a dataset in a folder, and only on that; ``act`` may be called again on what an earlier
call left behind. A dataset is made from a seed, which chooses file format, row ids and fragments.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb

Act = Callable[[str], Any]
AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Verb:
    """One change of the dataset in a folder.

    ``at``: the end of the name of the dataset that is looked at. ``between``: what may be seen of a
    verb that takes several commits, besides before and after (``looking.is_between``).
    """

    act: Act
    prepare: Act = lambda _: None
    at: str = ""
    between: tuple[str, ...] = ()


def rows(first: int, count: int = 10) -> pa.Table:
    """Rows with ids that count up from ``first``."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "n": pa.array([one % 7 for one in ids], pa.int64()),
            "text": [f"text {one}" for one in ids],
        }
    )


def make(place: str, seed: int) -> None:
    """Write the dataset that verbs are tried on: three versions of several fragments."""
    chance = random.Random(seed)
    lance_nb.write_dataset(
        rows(0, 30),
        place,
        max_rows_per_file=chance.choice((10, 15)),
        data_storage_version=chance.choice(("2.0", "2.1", "2.2")),
        enable_stable_row_ids=chance.random() < 0.5,
        enable_v2_manifest_paths=chance.random() < 0.75,
    )
    dataset = lance_nb.dataset(place)
    dataset.insert(rows(50))
    dataset.delete("id = 3")


def opened(place: str) -> Any:
    """Open the newest version of main."""
    return lance_nb.dataset(place, allow_bases=[str(Path(place).parent)])


def _tagged(place: str) -> None:
    opened(place).tags.create("kept", 1)


def _branched(place: str) -> None:
    opened(place).create_branch("dev", 2).insert(rows(500))


def _both_sides(place: str) -> None:
    _branched(place)
    opened(place).insert(rows(700))


def _indexed(place: str) -> None:
    opened(place).create_scalar_index("id", "BTREE")


def _configured(place: str) -> None:
    opened(place).update_config({"key": "old"})


def _first_names(place: str) -> None:
    lance_nb.write_dataset(rows(0), f"{place}-first", enable_v2_manifest_paths=False)
    lance_nb.dataset(f"{place}-first").insert(rows(20))
    lance_nb.dataset(f"{place}-first").insert(rows(40))


def _upsert(place: str) -> None:
    builder = (
        opened(place).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    )
    builder.execute(rows(25, 20))


def _insert_missing(place: str) -> None:
    opened(place).merge_insert("id").when_not_matched_insert_all().execute(rows(25, 20))


def _replace_by_source(place: str) -> None:
    builder = opened(place).merge_insert("id").when_matched_update_all()
    builder.when_not_matched_by_source_delete("id < 5").execute(rows(5, 5))


def _batch(place: str) -> None:
    opened(place).stage().append(rows(800)).delete("id < 4").commit()


def _clean(place: str) -> None:
    opened(place).cleanup_old_versions(AT_ONCE, delete_unverified=True)


def _many_versions(place: str) -> None:
    dataset = opened(place)
    dataset.insert(rows(60), mode="overwrite")
    dataset.insert(rows(90))


def _base(place: str) -> None:
    path = f"{Path(place).parent}/base"
    if not any(one.name == "more" for one in opened(place).base_paths().values()):
        opened(place).add_bases([lance_nb.DatasetBasePath(path, "more")])


def _append(place: str) -> None:
    opened(place).insert(rows(100))


VERBS: dict[str, Verb] = {
    "create": Verb(lambda place: lance_nb.write_dataset(rows(0), f"{place}-new"), at="-new"),
    "append": Verb(_append),
    "append of three files": Verb(
        lambda place: lance_nb.write_dataset(rows(100), place, mode="append", max_rows_per_file=4)
    ),
    "overwrite": Verb(lambda place: opened(place).insert(rows(100), mode="overwrite")),
    "overwrite with another schema": Verb(
        lambda place: opened(place).insert(pa.table({"id": [1, 2]}), mode="overwrite")
    ),
    "truncate": Verb(lambda place: opened(place).truncate_table()),
    "delete": Verb(lambda place: opened(place).delete("id % 3 = 0")),
    "delete of a fragment": Verb(lambda place: opened(place).delete("id >= 50")),
    "update": Verb(lambda place: opened(place).update({"n": "n + 100"}, where="id < 5")),
    "update of columns": Verb(
        lambda place: opened(place).update({"n": "id + 100"}, where="id < 5", mode="columns")
    ),
    "merge_insert, upsert": Verb(_upsert),
    "merge_insert, missing rows": Verb(_insert_missing),
    "merge_insert, delete by source": Verb(_replace_by_source),
    "add_columns": Verb(lambda place: opened(place).add_columns({"twice": "id * 2"})),
    "alter_columns, rename": Verb(
        lambda place: opened(place).alter_columns({"path": "n", "name": "m"})
    ),
    "alter_columns, cast": Verb(
        lambda place: opened(place).alter_columns({"path": "n", "data_type": pa.int32()})
    ),
    "drop_columns": Verb(lambda place: opened(place).drop_columns(["n"])),
    "merge": Verb(
        lambda place: opened(place).merge(pa.table({"id": [1, 2], "label": ["a", "b"]}), "id")
    ),
    "compact": Verb(
        lambda place: opened(place).optimize.compact_files(target_rows_per_fragment=100),
        between=("same rows",),
    ),
    "create_scalar_index": Verb(_indexed),
    "replace an index": Verb(
        lambda place: opened(place).create_scalar_index("id", "BTREE", replace=True),
        lambda place: (_indexed(place), opened(place).insert(rows(300))),
    ),
    "drop_index": Verb(lambda place: opened(place).drop_index("id_idx"), _indexed),
    "append to an indexed dataset": Verb(_append, _indexed),
    "restore": Verb(lambda place: opened(place).checkout_version(1).restore()),
    "update_config": Verb(lambda place: opened(place).update_config({"key": "new"})),
    "delete_config_keys": Verb(
        lambda place: opened(place).delete_config_keys(["key"]), _configured
    ),
    "update_metadata": Verb(lambda place: opened(place).update_metadata({"key": "new"})),
    "update_schema_metadata": Verb(
        lambda place: opened(place).update_schema_metadata({"key": "new"})
    ),
    "update_field_metadata": Verb(
        lambda place: opened(place).update_field_metadata({"n": {"key": "new"}})
    ),
    "create_branch": Verb(
        lambda place: opened(place).create_branch("dev", 2), between=("unfinished",)
    ),
    "append to a branch": Verb(
        lambda place: opened(place).checkout_version(("dev", None)).insert(rows(100)), _branched
    ),
    "branches.delete": Verb(
        lambda place: opened(place).branches.delete("dev"), _branched, between=("unfinished",)
    ),
    "branches.merge": Verb(
        lambda place: opened(place).branches.merge("dev"), _both_sides, between=("tag",)
    ),
    "branches.merge with copied files": Verb(
        lambda place: opened(place).branches.merge("dev", copy=True), _both_sides
    ),
    "cherry_pick": Verb(
        lambda place: opened(place).cherry_pick(("dev", 3)), _both_sides, between=("tag",)
    ),
    "revert": Verb(lambda place: opened(place).revert(2)),
    "a staged batch": Verb(_batch),
    "tags.create": Verb(lambda place: opened(place).tags.create("kept", 2)),
    "tags.update": Verb(lambda place: opened(place).tags.update("kept", 2), _tagged),
    "tags.replace_metadata": Verb(
        lambda place: opened(place).tags.replace_metadata("kept", {"k": "v"}), _tagged
    ),
    "tags.delete": Verb(lambda place: opened(place).tags.delete("kept"), _tagged),
    "shallow_clone": Verb(
        lambda place: opened(place).shallow_clone(f"{place}-clone", 2), at="-clone"
    ),
    "deep_clone": Verb(lambda place: opened(place).deep_clone(f"{place}-clone", 2), at="-clone"),
    "cleanup_old_versions": Verb(_clean, _many_versions, between=("versions",)),
    "migrate_manifest_paths_v2": Verb(
        lambda place: lance_nb.dataset(f"{place}-first", 1).migrate_manifest_paths_v2(),
        _first_names,
        at="-first",
        between=("refused",),
    ),
    "add_bases": Verb(_base),
}
