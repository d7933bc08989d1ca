"""Print how much of pylance's public API ``lance_nb`` has: ``python -m tests.support.api_report``.

Totals, then every absent or different name and parameter with its reason. ``--all`` lists the
parameters of absent classes and functions too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.support.api_absences import REFUSED, reason_for
from tests.support.api_comparison import NOT_COMPARED, Entry, compare


def report(entries: Sequence[Entry], *, lists_all: bool = False) -> list[str]:
    """Return the lines of the report."""
    lines = []
    for title, is_parameter in (("public names", False), ("parameters", True)):
        chosen = [entry for entry in entries if entry.is_parameter == is_parameter]
        absent = [entry for entry in chosen if entry.problem == "missing"]
        other = [entry for entry in chosen if entry.problem is not None and entry not in absent]
        lines.append(
            f"{title}: {len(chosen)} in the reference, {len(chosen) - len(absent) - len(other)} "
            f"present, {len(other)} present but different, {len(absent)} absent"
        )
    different = [entry for entry in entries if entry.problem is not None]
    shown = [one for one in different if lists_all or one.cause in (None, one.place)]
    lines.append("")
    lines += [f"{one.place}: {one.problem}; {reason_for(one) or 'NOT LISTED'}" for one in shown]
    lines.append("")
    lines += [
        f"{one.place}: present so that positions fit, refused when given; {REFUSED[name]}"
        for one in entries
        if one.is_parameter and (name := one.place.rpartition("(")[2][:-1]) in REFUSED
        if one.problem is None
    ]
    lines.append("")
    lines += [f"not compared: {name}: {reason}" for name, reason in NOT_COMPARED.items()]
    return lines


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="list what is inside absent classes")
    print("\n".join(report(compare(), lists_all=parser.parse_args().all)))


if __name__ == "__main__":
    main()
