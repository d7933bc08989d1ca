"""Whether our operation can follow one that was committed after we read: the conflict grid.

``TABLE`` has a row for our operation and a column for the one that was committed first. A cell
holds the letters of its rules (conflict_rules.py); of those that apply, the strictest verdict
counts. ``.`` is a cell without rules: the two are compatible. An operation without a row and a
column is not known to this release and conflicts with everything.

Source: conflict_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_nb.errors import (
    CommitConflictError,
    CommitError,
    InvalidInputError,
    RetryableCommitConflictError,
)
from lance_nb.transactions.conflict_rules import RULES, Circumstances, Conflict, Rule, Verdict
from lance_nb.transactions.operation import Operation, operation_name
from lance_nb.transactions.registry import OPERATIONS

TABLE = r"""
ours \ theirs     Ap   Dl   Ov   CI   Rw   Mr   Rs   RF   Up   Pr   UC   DR   UMWS Cl   UB   DO
Append            .    .    X    .    .    n    X    .    .    n    .    .    X    .    .    ?
Delete            .    d    X    .    f    R    X    .    d    .    .    f    X    .    .    ?
Overwrite         .    .    Rk   .    .    .    .    .    .    .    k    .    X    .    .    ?
CreateIndex       .    .    X    i    b    aD   X    .    m    D    .    j    l    .    .    ?
Rewrite           .    f    X    b    fe   R    X    .    f    .    .    f    .    .    .    ?
Merge             R    R    X    a    R    R    X    .    R    X    s    R    X    .    .    ?
Restore           .    .    .    .    .    .    .    .    .    .    S    .    X    .    .    ?
ReserveFragments  .    .    X    .    .    .    X    .    .    .    .    .    .    .    .    ?
Update            v    d    X    .    f    R    X    .    du   ng   .    f    w    .    .    ?
Project           n    .    X    .    .    R    X    .    n    R    s    n    X    .    .    ?
UpdateConfig      .    .    Sk   .    .    s    S    .    .    F    k    .    .    .    .    ?
DataReplacement   .    t    X    j    f    R    X    .    ft   nG   .    c    X    .    .    ?
UpdateMemWalState X    X    X    w    .    X    X    .    w    X    .    X    w    X    .    ?
Clone             .    .    .    .    .    .    .    .    .    .    .    .    .    .    .    ?
UpdateBases       .    .    .    .    .    .    .    .    .    .    .    .    .    .    p    ?
DataOverlay       ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?    ?
"""

NOTHING_KNOWN = Circumstances()
_NOT_UNDERSTOOD = (RULES["?"],)
_REMEDY = {
    Verdict.RETRYABLE: "Read version {version} and do the change again.",
    Verdict.INCOMPATIBLE: (
        "Look at version {version} before deciding anew: repeated as it is, the change would mean"
        " something else."
    ),
}


def check(
    ours: Operation, theirs: Operation, circumstances: Circumstances = NOTHING_KNOWN
) -> Conflict:
    """Return whether ``ours`` can be committed on top of ``theirs``."""
    rules = _CELLS.get((ours.arm, theirs.arm), _NOT_UNDERSTOOD)
    if not rules:
        return Conflict(Verdict.COMPATIBLE)
    mine, other = ours.footprint(), theirs.footprint()
    conflicts = (rule.judge(mine, other, circumstances) for rule in rules)
    return max(
        (conflict for conflict in conflicts if conflict is not None),
        key=lambda conflict: conflict.verdict,
        default=Conflict(Verdict.COMPATIBLE),
    )


def conflict_error(
    conflict: Conflict, ours: Operation, theirs: Operation, version: int
) -> CommitError:
    """Return the error for a retryable or incompatible conflict with ``version``."""
    retryable = conflict.verdict is Verdict.RETRYABLE
    relation = "was overtaken by" if retryable else "is incompatible with"
    text = (
        f"this {operation_name(ours.arm)} {relation} the {operation_name(theirs.arm)} that was "
        f"committed as version {version}: {conflict.overlap}. "
        f"{_REMEDY[conflict.verdict].format(version=version)}"
    )
    return RetryableCommitConflictError(text) if retryable else CommitConflictError(text)


def grid() -> str:
    """Return the table and its legend as text: rows are ours, columns were committed first."""
    table = TABLE.strip("\n").replace("?", "X")
    rules = {rule.letter: rule for cell in _CELLS.values() for rule in cell}
    del rules["?"]
    letters = sorted(rules, key=lambda letter: (letter.lower(), letter))
    names = [operation_name(arm) for arm in OPERATIONS]
    lines = [table, "", "An operation that is not listed conflicts with everything (X).", ""]
    lines += [". compatible", *(f"{letter} {rules[letter].text}" for letter in letters)]
    lines += ["", *(f"{_abbreviate(name)} {name}" for name in names)]
    return "\n".join(lines) + "\n"


def _abbreviate(name: str) -> str:
    """Return the heading of a column: ``UC`` for UpdateConfig, ``Ap`` for Append."""
    capitals = "".join(letter for letter in name if letter.isupper())
    consonants = [letter for letter in name[1:] if letter not in "aeiou"]
    return capitals if len(capitals) > 1 else name[0] + consonants[0]


def parse_grid(table: str) -> Iterator[tuple[tuple[str, str], tuple[Rule, ...]]]:
    """Parse the table: the two arms and the rules of each cell.

    Raises InvalidInputError unless each operation of the registry has its row and its column, in
    the registry's order, and each letter is a rule's.
    """
    arms = list(OPERATIONS)
    names = [operation_name(arm) for arm in arms]
    header, *rows = (line.split() for line in table.strip("\n").splitlines())
    if [row[0] for row in rows] != names:
        raise InvalidInputError(f"the rows of the conflict grid are not the operations {names}")
    if header[3:] != list(map(_abbreviate, names)):
        raise InvalidInputError(f"the columns of the conflict grid are not the operations {names}")
    for ours, (name, *row) in zip(arms, rows, strict=True):
        if len(row) != len(arms) or set("".join(row)) - RULES.keys() - {"."}:
            raise InvalidInputError(f"row {name} of the conflict grid: {' '.join(row)}")
        for theirs, letters in zip(arms, row, strict=True):
            yield (ours, theirs), tuple(RULES[letter] for letter in letters if letter != ".")


_CELLS = dict(parse_grid(TABLE))
