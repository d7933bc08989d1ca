"""Columns that take no nulls, after a merge: whether there is a value in every row.

Limits: what one side alone has checked is trusted; whether rows of the other have nulls is not
looked up, only whether they may.
Source: none; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_nb.transactions.branch_merge.findings import COLUMNS, Findings
from lance_nb.transactions.branch_merge.outcome import Outcome
from lance_nb.transactions.branch_merge.schemas import MergedSchema


def check_nulls(
    outcome: Outcome, schema: MergedSchema, known: Iterable[int], findings: Findings
) -> None:
    """Report columns without nulls that have no value in some row.

    ``known``: fragments of the target that the source has as well; what it forbids there holds.
    """
    leaves = [one for one in schema.schema.leaves() if not one.nullable]
    added = {one.id for one in leaves if one.id in schema.added}
    tightened = {one.id for one in leaves if one.id in schema.tightened}
    if not added and not tightened:
        return
    checked = set(known)
    num_rows = 0
    for one in outcome.target.fragments.values():
        now = outcome.changed.get(one.id, one)
        held = {field for file in now.files for field in file.fields}
        may_be_null = not added <= held or (tightened and one.id not in checked)
        if one.id not in outcome.removed and may_be_null:
            num_rows += now.num_rows
    if num_rows:
        names = ", ".join(repr(schema.schema.path_of(one)) for one in sorted(added | tightened))
        findings.report(
            COLUMNS,
            f"column {names} takes no nulls on the source; {num_rows:,} rows here may have some",
            choices=(),
            remedy="Allow nulls on the source first, or fill them here",
            fields=added | tightened,
            num_rows=num_rows,
        )
