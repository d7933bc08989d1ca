"""Histories that pylance wrote, replayed: each transaction applied to the version before it gives
the version that pylance made of it, to the last fragment, flag, row id and index.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb._pb import transaction as pb
from lance_nb.transactions.transaction import Transaction
from tests.support.random_history import RandomHistory
from tests.support.replay import differences, load_history, rebuild, transaction_of
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

SEEDS = range(6)
STEPS = 45


@pytest.fixture(scope="module", params=[(s, ids) for s in SEEDS for ids in (False, True)], ids=str)
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict:
    require_pylance()
    seed, stable = request.param
    written = RandomHistory(tmp_path_factory.mktemp("replay"), seed, stable_row_ids=stable)
    written.run(STEPS)
    return load_history(written.path)


def test_every_transaction_reads_and_writes_back_the_same(history: dict) -> None:
    for manifest, _ in history.values():
        data = manifest.transaction_section.data
        transaction = Transaction.from_bytes(data)
        assert Transaction.from_bytes(transaction.to_bytes()) == transaction
        plain = pb.Transaction.FromString(data).SerializeToString(deterministic=True)
        assert transaction.to_bytes() == plain


def test_every_version_is_built_as_pylance_builds_it(history: dict) -> None:
    found = {}
    for version in sorted(history)[1:]:
        problems = differences(rebuild(history, version), history[version])
        if problems:
            arm = transaction_of(history[version][0]).operation.arm
            found[f"version {version}, {arm}"] = problems
    assert found == {}


def test_the_first_version_is_built_as_pylance_builds_it(history: dict) -> None:
    manifest, _ = history[1]
    built = rebuild(
        history,
        1,
        stable_row_ids=bool(manifest.reader_feature_flags & 2),
        file_version=manifest.data_format.version,
    )
    assert differences(built, history[1]) == []


def test_clones_and_branches_are_built_as_pylance_builds_them(tmp_path: Path) -> None:
    require_pylance()
    import lance

    source = lance.write_dataset(pa.table({"a": range(20)}), tmp_path / "source")
    source.create_scalar_index("a", "BTREE")
    source.delete("a = 3")
    origin = load_history(tmp_path / "source")
    source.shallow_clone(str(tmp_path / "clone"), 3)
    branch = source.create_branch("dev", 2)
    branch.create_branch("dev/child", ("dev", None))
    homes = {
        "clone": (tmp_path / "clone", origin, 3),
        "branch": (tmp_path / "source/tree/dev", origin, 2),
    }
    homes["branch of a branch"] = (
        tmp_path / "source/tree/dev/child",
        load_history(tmp_path / "source/tree/dev"),
        2,
    )
    for name, (home, parent, version) in homes.items():
        theirs = load_history(home)[version]
        history = {**parent, version - 1: (None, ())}
        built = rebuild({**history, version: theirs}, version, source=parent)
        assert differences(built, theirs) == [], name
