"""What a transaction says of compactions, restores and clones."""

from __future__ import annotations

import pytest

from lance_nb._pb import transaction as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.transaction_effects import (
    ReplacedFragments,
    cloned_place,
    restored_version,
    rewrite_groups,
)
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.transaction import Transaction
from tests.support.manifests import fragment

Op = pb.Transaction


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


def test_a_clone_names_the_folder_that_it_refers_to():
    clone = Op(clone=Op.Clone(is_shallow=True, ref_path="/somewhere", ref_version=3))
    assert cloned_place(clone.SerializeToString()) == "/somewhere"
    assert cloned_place(Op(append=Op.Append()).SerializeToString()) is None
    assert cloned_place(b"") is None
    with pytest.raises(CorruptFileError):
        cloned_place(b"\xff", "x")
