"""Branches and tags: lists, and everything that can be done with them, its consequences first.

Its ES module is ``branches.js``. ``kind`` is "branch" or "tag", ``at`` a ref as people write it.
Requests, beside those of
``merge_answers``; what looks is in ``ref_answers``, what changes in ``ref_changes``:

============= ================================================ =================================
request       args                                             result
============= ================================================ =================================
refs.list     kind, text, sort, descending, first, count,      models.ref_list.RefPage, ``code``
              fresh (read the records again)
refs.heads    names (null: main)                               heads: models.ref_list
refs.show     kind, name                                       models.ref_list
refs.check    kind, action (create, move), name, at            reason (why the name cannot be),
                                                               problem (of ``at``), place,
                                                               consequences, code
refs.explain  kind, name (long work)                           consequences of deleting, refused,
                                                               seen, code
refs.bytes    name (long work)                                 words: what deleting a tag frees
refs.create   kind, name, place, note                          words, place, parts
refs.move     name, place, seen                                the same
refs.note     kind, name, note, before                         the same
refs.delete   kind, name, seen (long work)                     the same
============= ================================================ =================================

``parts`` are for ``ctx.refresh``; ``seen`` is what the person was shown: a tag or branch that is
not so any more is left alone, and the answer is an error. ``place`` is null where there is nowhere
to go.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb.explorer.merge_answers import MergeAnswers
from lance_nb.explorer.messages import Handler
from lance_nb.explorer.pictures import Picture
from lance_nb.explorer.ref_answers import RefAnswers
from lance_nb.explorer.ref_changes import RefChanges
from lance_nb.explorer.ref_pictures import picture_of_refs
from lance_nb.explorer.session import Session
from lance_nb.explorer.widget import LanceWidget


class RefsManager(LanceWidget):
    """The branches and tags of a dataset: look, create, move, delete, compare, merge."""

    entry: ClassVar[str] = "widgets/branches.js"
    parts: ClassVar[tuple[str, ...]] = ("card", "timeline")
    default_height: ClassVar[int] = 440

    def picture(self) -> Picture:
        """Return the branches and tags as text and static HTML."""
        return super().picture() if self.error is not None else picture_of_refs(self.dataset)

    @classmethod
    def answers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about tags and branches."""
        desks = (RefAnswers, RefChanges, MergeAnswers)
        return {kind: do for desk in desks for kind, do in session.keep(desk).handlers().items()}
