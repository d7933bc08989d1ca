"""The simulation finds mistakes: known faults of commit protocols, put in on purpose."""

from __future__ import annotations

import pytest

from lance_nb.errors import (
    CommitStateUnknownError,
    LanceError,
    ObjectExistsError,
    StorageError,
)
from lance_nb.transactions import commit as commit_module
from lance_nb.transactions import rebase as rebase_module
from lance_nb.transactions import version_slots
from lance_nb.transactions.version_slots import StoreSlots
from tests.faults.memory.simulation import simulate

pytestmark = pytest.mark.slow

SEEDS = 400


def _no_read_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(version_slots, "is_ours", lambda *_: False)
    _own_commit_not_recognised(patch)  # which would find it one attempt later


def _look_then_write(patch: pytest.MonkeyPatch) -> None:
    def create(self, name, data, transaction_uuid) -> None:
        if self.home.exists(name.path):
            raise ObjectExistsError(name.path)
        self.home.write(name.path, data)

    patch.setattr(StoreSlots, "create", create)


def _unknown_is_failed(patch: pytest.MonkeyPatch) -> None:
    whole = version_slots.claim

    def claim(*args, **options) -> bool:
        try:
            return whole(*args, **options)
        except CommitStateUnknownError as error:
            raise StorageError("", "gave up") from error

    patch.setattr(version_slots, "claim", claim)


def _unknown_is_failed_at_once(patch: pytest.MonkeyPatch) -> None:
    def claim(slots, name, data, uuid, environment) -> bool:
        try:
            slots.create(name, data, uuid)
        except ObjectExistsError:
            return False
        return True

    patch.setattr(version_slots, "claim", claim)


def _own_commit_not_recognised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit_module._Commit, "_landed", lambda *_: None)


def _deletions_not_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebase_module, "rebase", lambda transaction, *_: transaction)


def _deletions_of_others_forgotten(patch: pytest.MonkeyPatch) -> None:
    whole = rebase_module.RebaseContext

    def context(*parts, write_deletions, affected_rows, **options):
        def only_ours(fragment_id, read_version, _vector):
            return write_deletions(fragment_id, read_version, affected_rows[fragment_id])

        return whole(*parts, write_deletions=only_ours, affected_rows=affected_rows, **options)

    patch.setattr(rebase_module, "RebaseContext", context)


def _built_on_the_read_version(patch: pytest.MonkeyPatch) -> None:
    whole = commit_module._Commit._build

    def build(self, current):
        if current is not None:
            number = current.manifest.version
            current = self._source.load(self._transaction.read_version)
            built = whole(self, current)
            return type(built)(
                commit_module.replace(built.manifest, version=number + 1), built.indices
            )
        return whole(self, current)

    patch.setattr(commit_module._Commit, "_build", build)


MISTAKES = [
    _no_read_back,
    _look_then_write,
    _unknown_is_failed,
    _unknown_is_failed_at_once,
    _own_commit_not_recognised,
    _deletions_not_merged,
    _deletions_of_others_forgotten,
    _built_on_the_read_version,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.__name__.strip("_"))
def test_the_simulation_finds(mistake, monkeypatch: pytest.MonkeyPatch):
    mistake(monkeypatch)
    with pytest.raises((AssertionError, LanceError)) as caught:
        simulate(0, SEEDS)
    print(caught.value.__notes__[0])
