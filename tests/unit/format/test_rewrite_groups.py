"""What a transaction tells of compactions and restores."""

from __future__ import annotations

import pytest

from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.rewrite_groups import ReplacedFragments, restored_version, rewrite_groups
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.transaction import Transaction
from tests.support.manifests import fragment


def _bytes(operation) -> bytes:
    return Transaction(3, operation, "u").to_bytes()


def test_groups_are_read_in_their_order() -> None:
    old, new = (fragment(1), fragment(2, deleted=4)), (fragment(3, rows=196),)
    other = RewriteGroup((fragment(5),), (fragment(6),))

    found = rewrite_groups(_bytes(Rewrite((RewriteGroup(old, new), other))))

    assert found == (ReplacedFragments(old, new), ReplacedFragments(*_both(other)))
    assert found[0].keeps_rows


def _both(group: RewriteGroup) -> tuple:
    return group.old_fragments, group.new_fragments


def test_groups_of_old_transactions_are_read() -> None:
    legacy = RewriteGroup((fragment(1),), (fragment(2),))

    assert rewrite_groups(_bytes(Rewrite((), legacy=legacy))) == (
        ReplacedFragments(*_both(legacy)),
    )


@pytest.mark.parametrize(
    "legacy", [RewriteGroup((fragment(1),), ()), RewriteGroup((), (fragment(2),))]
)
def test_a_group_of_an_old_transaction_may_have_one_side(legacy: RewriteGroup) -> None:
    found = rewrite_groups(_bytes(Rewrite((), legacy=legacy)))
    assert found == (ReplacedFragments(*_both(legacy)),)
    assert rewrite_groups(_bytes(Rewrite(()))) == ()


def test_rows_that_got_lost_are_noticed() -> None:
    file = DataFile("x.lance", (0,), (0,), 2, 2)

    group = ReplacedFragments((Fragment(1, (file,), 10),), (Fragment(2, (file,), 9),))
    assert not group.keeps_rows


def test_other_operations_have_no_groups() -> None:
    data = _bytes(Restore(2))

    assert rewrite_groups(data) == ()
    assert restored_version(data) == 2
    assert restored_version(_bytes(Rewrite(()))) is None
