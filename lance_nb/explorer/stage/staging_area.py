"""The staged changes of a dataset, shared by every explorer of it and by ``%lance``.

Cards are committed one by one, each as a version of its own, or together if one transaction can
hold all of them. Each card is made on a version of the dataset and does not see the other cards; a
card that is committed after another one is rebased, or re-run.

Limits: a staging area has ``MAX_CARDS`` cards, of which ``KEPT_DONE`` are committed ones; the
process keeps ``MAX_AREAS`` staging areas.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.staging import Stage
from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InternalError,
    InvalidInputError,
    LanceError,
    NotFoundError,
)
from lance_nb.explorer.editing.cell_draft import CellDraft
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import RestoreUndo
from lance_nb.explorer.stage.card import (
    COMMITTED,
    FAILED,
    UNKNOWN,
    Card,
    ProgressReporter,
    Running,
)
from lance_nb.explorer.stage.card_view import code_of, title_of
from lance_nb.explorer.stage.edit_forms import EDITS, IN_CODE, EditForm
from lance_nb.explorer.stage.row_sources import Namespace
from lance_nb.merging.choices import CellChoice
from lance_nb.writing.stage_preview import StagePreview

MAX_CARDS = 50
KEPT_DONE = 5
MAX_AREAS = 32
_OTHER_VALUES = (
    "the newest version has other values where your edits change something: decide the conflicts "
    "in the Stage tab first"
)
_AREAS: OrderedDict[str, StagingArea] = OrderedDict()


class StagingArea:
    """Cards in the order in which they are committed."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self._lock = threading.Lock()
        self._reporter: ProgressReporter | None = None

    @property
    def running(self) -> Running | None:
        """The work that is under way."""
        reporter = self._reporter
        return None if reporter is None else reporter.snapshot()

    @property
    def open_cards(self) -> list[Card]:
        """Cards that can be committed."""
        return [card for card in self.cards if card.is_open]

    def card(self, card_id: str) -> Card:
        """Find a card. Raises InvalidInputError."""
        for card in self.cards:
            if card.id == card_id:
                return card
        raise InvalidInputError("this card no longer exists")

    def add(
        self,
        dataset: LanceDataset,
        form: EditForm,
        namespace: Namespace,
        reporter: ProgressReporter,
    ) -> Card:
        """Add a card on the newest version of the dataset's branch. Raises LanceError."""
        with self.alone(reporter):
            self._put_away()
            if len(self.cards) >= MAX_CARDS:
                raise InvalidInputError(f"{MAX_CARDS} cards are staged: commit or discard some")
            newest = dataset.checkout_version((dataset.branch, None))
            card = Card(newest, form, namespace)
            card.prepare(reporter)
            self.cards.append(card)
            return card

    def adopt(self, stage: Stage, form: EditForm | None = None) -> Card:
        """Add a card for a stage, once; ``form`` says what made it, None for code.

        Raises LanceError.
        """
        for own_card in self.cards:
            if own_card.stage is stage:
                return own_card
        stage.check_usable()
        with self.alone(ProgressReporter()):
            card = Card(LanceDataset.from_opened(*stage.opened), form or EditForm(IN_CODE, {}), {})
            card.adopt(stage)
            self.cards.append(card)
            return card

    def edits(self, branch: str | None) -> Card | None:
        """Return the card that collects the edits of the grid on a branch, None without any."""
        for card in self.open_cards:
            if card.draft is not None and card.dataset.branch == branch:
                return card
        return None

    def edit(self, dataset: LanceDataset, change: Callable[[CellDraft], object]) -> Card:
        """Change the edits of the grid on a branch; their card is added with the first one.

        ``dataset`` is at the version that was looked at, which the edits are moved to. Raises
        LanceError; the edits are as they were then.
        """
        with self.alone(ProgressReporter()):
            card = self.edits(dataset.branch)
            if card is None:
                self._put_away()
                if len(self.cards) >= MAX_CARDS:
                    raise InvalidInputError(f"{MAX_CARDS} cards are staged: commit some first")
                card = Card(dataset, EditForm(EDITS, {}), {})
                card.draft = CellDraft(dataset)
            draft = card.draft
            if draft is None:
                raise InternalError("a card of edits has no draft")
            if dataset.version > draft.dataset.version and not draft.rebase(dataset):
                card.edited()
                card.fail(CommitConflictError(_OTHER_VALUES))
                raise CommitConflictError(_OTHER_VALUES)
            if dataset.version < draft.dataset.version:
                raise InvalidInputError(
                    f"the edits are based on version {draft.dataset.version}: go there to edit"
                )
            change(draft)
            card.edited()
            if draft.is_empty and card in self.cards and not draft.num_redo and not draft.num_undo:
                self.cards.remove(card)
            elif card not in self.cards:
                self.cards.append(card)
            return card

    def resolve(self, card_id: str, number: int, choices: Sequence[CellChoice]) -> Card:
        """Decide conflicts of a card's edits with a newer version. Raises InvalidInputError."""
        with self.alone(ProgressReporter()):
            card = self.card(card_id)
            if card.draft is None:
                raise InvalidInputError("this card has no conflicts")
            card.draft.resolve(number, choices)
            if not card.draft.conflicts:
                card.edited()
            return card

    def _put_away(self) -> None:
        """Forget all but the last committed cards."""
        done = [card for card in self.cards if card.state == COMMITTED]
        for card in done[: max(0, len(done) - KEPT_DONE)]:
            self.cards.remove(card)

    def drop_foreign_cards(self, dataset: LanceDataset) -> None:
        """Forget cards of a former dataset at this location, which has been replaced since."""
        for card in self.open_cards:
            branch, version = card.dataset.branch, card.dataset.version
            try:
                now = dataset.checkout_version((branch, version)).opened[1].manifest
            except NotFoundError:
                continue  # it was cleaned up: a re-run says what can be done
            if now.transaction_file != card.dataset.opened[1].manifest.transaction_file:
                self.cards.remove(card)

    def remove(self, card_id: str) -> int:
        """Remove a card and return the number of its files that were deleted."""
        with self.alone(ProgressReporter()):
            card = self.card(card_id)
            self.cards.remove(card)
            return card.discard()

    def earlier(self, card_id: str) -> None:
        """Move a card one position up in the order of commits."""
        position = self.cards.index(self.card(card_id))
        if position:
            self.cards[position - 1], self.cards[position] = (
                self.cards[position],
                self.cards[position - 1],
            )

    def prepare(self, card_id: str, reporter: ProgressReporter, engine: str | None = None) -> None:
        """Execute the edit of a card, on its planned engine or on another one."""
        with self.alone(reporter):
            card = self.card(card_id)
            if engine is None:
                card.prepare(reporter, run_large=True)
            else:
                card.move(EditForm.of(card.form.verb, card.form.args, engine).engine, reporter)

    def rerun(self, card_id: str, reporter: ProgressReporter) -> None:
        """Re-run a card on the newest version."""
        with self.alone(reporter):
            self.card(card_id).rerun(reporter)

    def commit(
        self, card_id: str, message: str | None, reporter: ProgressReporter, typed: str = ""
    ) -> Card:
        """Commit one card; a failed commit is recorded on the card.

        ``typed`` is the word that the review of the card asks for. Raises LanceError if the commit
        cannot begin.
        """
        with self.alone(reporter):
            card = self.card(card_id)
            card.commit(message, reporter, typed)
            record(card)
            return card

    def commit_each(self, message: str | None, reporter: ProgressReporter) -> list[Card]:
        """Commit every card, one after the other, until one of them fails.

        Raises InvalidInputError while one of them cannot be undone.
        """
        done = []
        with self.alone(reporter):
            self._check_reversible()
            for card in self.open_cards:
                if card.state == FAILED:
                    card.rerun(reporter)
                card.commit(message, reporter)
                record(card)
                done.append(card)
                if card.state != COMMITTED:
                    break
        return done

    def commit_together(self, message: str | None, reporter: ProgressReporter) -> list[Card]:
        """Commit every card as one version. Raises InvalidInputError if they cannot be joined."""
        with self.alone(reporter):
            cards = self.open_cards
            self._check_reversible()
            if not cards or any(card.action is not None for card in cards):
                raise InvalidInputError(
                    "tags, branches and clean-ups cannot be part of a transaction"
                )
            self._bring_together(cards, reporter)
            stages = [card.stage for card in cards if card.stage is not None]
            joined = stages[0].joined(*stages[1:])
            reporter.phase("committing")
            try:
                version = joined.commit(message or cards[0].message or None)
            except CommitStateUnknownError as error:
                for card in cards:
                    card.stage = joined
                    card.fail(error, UNKNOWN)
            except LanceError as error:
                for card in cards:
                    card.fail(error)
            else:
                for card in cards:
                    card.land(version)
                record(*cards)
            return cards

    def why_not_each(self) -> str:
        """Return why the open cards cannot be committed at once; empty if they can."""
        final = [
            card for card in self.open_cards if card.review is not None and card.review.is_final
        ]
        if not final:
            return ""
        return f"“{title_of(final[0].form)}” cannot be undone: commit it by itself in the Stage tab"

    def _check_reversible(self) -> None:
        reason = self.why_not_each()
        if reason:
            raise InvalidInputError(reason)

    def _bring_together(self, cards: Sequence[Card], reporter: ProgressReporter) -> None:
        """Prepare all cards on the same version."""
        newest = max(card.dataset.version for card in cards)
        for card in cards:
            if card.state == FAILED or card.dataset.version != newest:
                card.rerun(reporter)
            if card.stage is None:
                card.prepare(reporter, run_large=True)

    def preview(self) -> StagePreview | None:
        """Preview a commit of all cards as one version; None if they cannot be joined."""
        stages = [card.stage for card in self.open_cards if card.stage is not None]
        if len(stages) != len(self.open_cards) or not stages:
            return None
        if len({stage.read_version for stage in stages}) > 1 or self._problem(stages):
            return None
        return stages[0].joined(*stages[1:]).preview()

    def why_not_together(self) -> str:
        """Return why the open cards cannot be one transaction; empty if they can."""
        cards = self.open_cards
        if len(cards) < 2:
            return "only one card is staged" if cards else "no card is staged"
        if any(card.action is not None for card in cards):
            return "tags, branches and clean-ups cannot be part of a transaction"
        if len({card.dataset.branch for card in cards}) > 1:
            return "they are on different branches"
        stages = [
            card.stage for card in cards if card.stage is not None and card.stage.state == "open"
        ]
        if len({stage.read_version for stage in stages}) > 1:
            return ""  # brought to one version first
        return self._problem(stages)

    @staticmethod
    def _problem(stages: Sequence[Stage]) -> str:
        """Return why stages of one version cannot be joined; empty if they can."""
        try:
            if stages:
                stages[0].joined(*stages[1:])
        except LanceError as error:
            return str(error)
        return ""

    @contextmanager
    def alone(self, reporter: ProgressReporter) -> Iterator[None]:
        """Hold the lock: cards share files and versions, so one operation runs at a time."""
        if not self._lock.acquire(blocking=False):
            raise InvalidInputError(
                "work on another card is in progress: wait for it, or cancel it"
            )
        self._reporter = reporter
        try:
            yield
        finally:
            self._reporter = None
            self._lock.release()


def record(*cards: Card) -> None:
    """Record cards that were committed together in the log of operations."""
    card = cards[0]
    if card.state != COMMITTED:
        return
    title = " + ".join(title_of(card.form) for card in cards)
    place, branch = None, card.dataset.branch
    undo = None if card.action is None else card.action.undo
    if card.version is not None:
        place = branch, card.version
        undo = RestoreUndo(branch, card.version, title)
    lines = [code_of(card) for card in cards]
    code = {key: "\n".join(line[key] for line in lines) for key in ("python", "magic")}
    operations_log_of(card.dataset.uri).record(title, code, undo, place)


def staging_area_of(dataset: LanceDataset) -> StagingArea:
    """Return the staging area of a dataset, whichever version or branch is open."""
    uri = _key(dataset.uri)
    area = _AREAS.setdefault(uri, StagingArea())
    _AREAS.move_to_end(uri)
    idle = [
        key for key, other_area in _AREAS.items() if not other_area.cards and other_area is not area
    ]
    for key in idle[: max(0, len(_AREAS) - MAX_AREAS)]:
        del _AREAS[key]
    return area


def _key(uri: str) -> str:
    return uri if "://" in uri else str(Path(uri).absolute())
