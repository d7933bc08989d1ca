"""The version that a transaction makes of the current one, checked before anybody writes it.

Source: manifest_building.py, invariants.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lance_nb.transactions.invariants import check_invariants
from lance_nb.transactions.old_manifests import may_need_repair, repaired
from lance_nb.transactions.operation import ApplyContext, Built, Snapshotted
from lance_nb.transactions.transaction import Transaction


def build(
    transaction: Transaction,
    ctx: ApplyContext,
    apply: Callable[[ApplyContext], Built] | None = None,
) -> Built:
    """Apply a transaction and check the outcome; ``apply`` makes it instead of the operation.

    What old releases left wrong in the version before is repaired.

    Raises what the operation raises; CorruptFileError where a version that the new one is made of
    is damaged, and InternalError for any other outcome that no dataset may have: such a version is
    never written.
    """
    sources: list[Snapshotted] = []

    def load(version: int) -> Snapshotted:
        sources.append(ctx.load_version(version))
        return sources[-1]

    name = "" if ctx.options.no_transaction_file else transaction.file_name
    given = replace(ctx, transaction_file=name, tag=transaction.tag, load_version=load)
    built = (apply or transaction.operation.apply)(given)
    if built.manifest.transaction_file != name or built.manifest.tag != transaction.tag:
        manifest = replace(built.manifest, transaction_file=name, tag=transaction.tag)
        built = replace(built, manifest=manifest)
    if any(map(may_need_repair, built.writers)):
        is_clone = transaction.operation.arm == "clone"
        built = repaired(built, ctx.open_snapshot, is_clone=is_clone)
    check_invariants(built, ctx, sources)
    return built
