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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.stage_preview import StagePreview
from lance_nb.dataset.verbs.staging import Stage
from lance_nb.errors import CommitStateUnknownError, InvalidInputError, LanceError, NotFoundError
from lance_nb.explorer.staging.card import COMMITTED, FAILED, UNKNOWN, Card
from lance_nb.explorer.staging.edit_forms import IN_CODE, EditForm
from lance_nb.explorer.staging.progress import ProgressReporter, Running
from lance_nb.explorer.staging.row_sources import Namespace

MAX_CARDS = 50
KEPT_DONE = 5
MAX_AREAS = 32
_AREAS: OrderedDict[str, StagingArea] = OrderedDict()


class StagingArea:
    """Cards in the order in which they are committed."""

    def __init__(self) -> None:
        self.cards: list[Card] = []
        self._lock = threading.Lock()
        self._teller: ProgressReporter | None = None

    @property
    def running(self) -> Running | None:
        """The work that is under way."""
        teller = self._teller
        return None if teller is None else teller.seen()

    @property
    def open_cards(self) -> list[Card]:
        """Cards that can be committed."""
        return [one for one in self.cards if one.is_open]

    def card(self, card_id: str) -> Card:
        """Find a card. Raises InvalidInputError."""
        for one in self.cards:
            if one.id == card_id:
                return one
        raise InvalidInputError("this card is not there any more")

    def add(
        self, dataset: LanceDataset, wish: EditForm, namespace: Namespace, teller: ProgressReporter
    ) -> Card:
        """Make a card on the newest version of the dataset's branch. Raises LanceError."""
        with self._alone(teller):
            self._put_away()
            if len(self.cards) >= MAX_CARDS:
                raise InvalidInputError(f"{MAX_CARDS} cards are staged: commit or discard some")
            newest = dataset.checkout_version((dataset.branch, None))
            made = Card(newest, wish, namespace)
            made.prepare(teller)
            self.cards.append(made)
            return made

    def adopt(self, stage: Stage) -> Card:
        """Lay a stage that was made in code on the deck; it is there once. Raises LanceError."""
        for one in self.cards:
            if one.stage is stage:
                return one
        stage.check_usable()
        with self._alone(ProgressReporter()):
            card = Card(LanceDataset.from_opened(*stage.opened), EditForm(IN_CODE, {}), {})
            card.adopt(stage)
            self.cards.append(card)
            return card

    def _put_away(self) -> None:
        """Forget cards that were committed long ago."""
        done = [one for one in self.cards if one.state == COMMITTED]
        for one in done[: max(0, len(done) - KEPT_DONE)]:
            self.cards.remove(one)

    def forget_strangers(self, dataset: LanceDataset) -> None:
        """Forget cards of another dataset, which was in this place before it was written anew."""
        for one in self.open_cards:
            branch, version = one.dataset.branch, one.dataset.version
            try:
                now = dataset.checkout_version((branch, version)).opened[1].manifest
            except NotFoundError:
                continue  # it was cleaned up: a re-run says what can be done
            if now.transaction_file != one.dataset.opened[1].manifest.transaction_file:
                self.cards.remove(one)

    def remove(self, card_id: str) -> int:
        """Take a card away; return how many files of its were deleted."""
        with self._alone(ProgressReporter()):
            card = self.card(card_id)
            self.cards.remove(card)
            return card.discard()

    def earlier(self, card_id: str) -> None:
        """Commit a card before the one that stands before it."""
        at = self.cards.index(self.card(card_id))
        if at:
            self.cards[at - 1], self.cards[at] = self.cards[at], self.cards[at - 1]

    def prepare(self, card_id: str, teller: ProgressReporter, engine: str | None = None) -> None:
        """Do the work of a card: where it is planned, or somewhere else."""
        with self._alone(teller):
            card = self.card(card_id)
            if engine is None:
                card.prepare(teller, run_large=True)
            else:
                card.move(EditForm.of(card.wish.verb, card.wish.args, engine).engine, teller)

    def rerun(self, card_id: str, teller: ProgressReporter) -> None:
        """Make a card anew on the newest version."""
        with self._alone(teller):
            self.card(card_id).rerun(teller)

    def commit(self, card_id: str, message: str | None, teller: ProgressReporter) -> Card:
        """Commit one card. Raises what keeps it from beginning; the rest is on the card."""
        with self._alone(teller):
            card = self.card(card_id)
            card.commit(message, teller)
            return card

    def commit_each(self, message: str | None, teller: ProgressReporter) -> list[Card]:
        """Commit every card, one after the other, until one of them does not land."""
        done = []
        with self._alone(teller):
            for card in self.open_cards:
                if card.state == FAILED:
                    card.rerun(teller)
                card.commit(message, teller)
                done.append(card)
                if card.state != COMMITTED:
                    break
        return done

    def commit_together(self, message: str | None, teller: ProgressReporter) -> list[Card]:
        """Commit every card as one version. Raises InvalidInputError when that cannot be said."""
        with self._alone(teller):
            cards = self.open_cards
            if not cards or any(one.action is not None for one in cards):
                raise InvalidInputError("tags, branches and clean-ups are no part of a transaction")
            self._bring_together(cards, teller)
            stages = [one.stage for one in cards if one.stage is not None]
            joined = stages[0].joined(*stages[1:])
            teller.phase("committing")
            try:
                version = joined.commit(message or cards[0].message or None)
            except CommitStateUnknownError as error:
                for one in cards:
                    one.stage = joined
                    one.fail(error, UNKNOWN)
            except LanceError as error:
                for one in cards:
                    one.fail(error)
            else:
                for one in cards:
                    one.land(version)
            return cards

    def _bring_together(self, cards: Sequence[Card], teller: ProgressReporter) -> None:
        """Have all cards ready, and on the same version."""
        newest = max(one.dataset.version for one in cards)
        for one in cards:
            if one.state == FAILED or one.dataset.version != newest:
                one.rerun(teller)
            if one.stage is None:
                one.prepare(teller, run_large=True)

    def preview(self) -> StagePreview | None:
        """Say what a commit of all cards as one version would change; None when that is not so."""
        stages = [one.stage for one in self.open_cards if one.stage is not None]
        if len(stages) != len(self.open_cards) or not stages:
            return None
        if len({one.read_version for one in stages}) > 1 or self._problem(stages):
            return None
        return stages[0].joined(*stages[1:]).preview()

    def why_not_together(self) -> str:
        """Say why the open cards cannot be one transaction; empty when they can, or are few."""
        cards = self.open_cards
        if len(cards) < 2:
            return "there is one card" if cards else "there is no card"
        if any(one.action is not None for one in cards):
            return "tags, branches and clean-ups are no part of a transaction"
        if len({one.dataset.branch for one in cards}) > 1:
            return "they are on different branches"
        stages = [one.stage for one in cards if one.stage is not None and one.stage.state == "open"]
        if len({one.read_version for one in stages}) > 1:
            return ""  # brought to one version first
        return self._problem(stages)

    @staticmethod
    def _problem(stages: Sequence[Stage]) -> str:
        """Say why stages of one version cannot be joined."""
        try:
            if stages:
                stages[0].joined(*stages[1:])
        except LanceError as error:
            return str(error)
        return ""

    @contextmanager
    def _alone(self, teller: ProgressReporter) -> Iterator[None]:
        """Do one thing at a time: cards share files and versions."""
        if not self._lock.acquire(blocking=False):
            raise InvalidInputError("another card is being worked on: wait for it, or cancel it")
        self._teller = teller
        try:
            yield
        finally:
            self._teller = None
            self._lock.release()


def staging_area_of(dataset: LanceDataset) -> StagingArea:
    """Return the deck of a dataset, whichever of its versions or branches is open."""
    uri = _key(dataset.uri)
    deck = _AREAS.setdefault(uri, StagingArea())
    _AREAS.move_to_end(uri)
    idle = [key for key, one in _AREAS.items() if not one.cards and one is not deck]
    for key in idle[: max(0, len(_AREAS) - MAX_AREAS)]:
        del _AREAS[key]
    return deck


def forget_staging_area(uri: str) -> None:
    """Forget what is staged on a dataset, without touching a file: it is not there any more."""
    _AREAS.pop(_key(uri), None)


def _key(uri: str) -> str:
    return uri if "://" in uri else str(Path(uri).absolute())
