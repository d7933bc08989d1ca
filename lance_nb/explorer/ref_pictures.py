"""The static picture of branches and tags, for saved notebooks: where each leaves or points to.

Limits: ``MAX_LINES`` branches and as many tags.
"""

from __future__ import annotations

from lance_nb.explorer.models import text
from lance_nb.explorer.models.refs import MAIN
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.pictures import Picture, picture_of_table

MAX_LINES = 12


def picture_of_refs(dataset: Source) -> Picture:
    """Picture the branches and tags of a dataset, from their records alone."""
    branches, tags = dataset.branches.list(), dataset.tags.list()
    lines = [("branch", MAIN, "")]
    for name, about in sorted(branches.items())[:MAX_LINES]:
        fork = text.ref_label(about["parent_branch"], about["parent_version"])
        mark = ", unfinished" if about.get("is_unfinished") else ""
        lines.append(("branch", text.name(name), f"from {fork}{mark}"))
    for name, about in sorted(tags.items())[:MAX_LINES]:
        lines.append(("tag", text.name(name), text.ref_label(about["branch"], about["version"])))
    said = f"{text.count(len(branches))} beside {MAIN}, {text.plural(len(tags), 'tag')}"
    left = sum(max(0, len(one) - MAX_LINES) for one in (branches, tags))
    return picture_of_table(
        f"Branches and tags of {text.name(dataset.name)}",
        (said,),
        (("", "name", "where"), lines),
        note=f"{text.count(left)} more" if left else "",
    )
