"""Edits before they are committed: forms, cards with their effect, commit and undo.

Its ES module is ``stage.js``. The cards are those of the dataset's staging area, which every
explorer of it and ``%lance`` share. Requests (with ``branch`` and ``version`` where the dataset is
looked at):

=============== ================================ ==============================================
request         args                             result
=============== ================================ ==============================================
stage.menu                                       verbs with their fields, columns, variables, names
stage.check     verb, args, engine               note, code, where; an error says what is wrong
stage.cards                                      area: cards, together, running
stage.forecast                   (long work)     area, compared with what others committed, and
                                                 with the expectations
stage.running                                    running: how far the work under way is
stage.add       verb, args, engine (long work)   area
stage.prepare   id, engine? (long work)          area
stage.rerun     id (long work)                   area
stage.commit    id, message, seen, typed (long   area, branch, version
                work)
stage.all       message, together (long work)    area, branch, version
stage.look      id                               area, branch, version
stage.remove    id                               area
stage.earlier   id                               area
stage.resume    id (long work)                   area, branch, version
stage.forget    id                               area
=============== ================================ ==============================================

``area`` has the jobs that were interrupted, too (``unfinished``); ``id`` of the last two is that of
a job. Requests that write are refused while the lock is shut. ``seen`` is the key of the review
that was shown, ``typed`` the word that it asks for: a card whose consequences have changed is not
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.staging import Stage
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.explorer.messages import Answer, Handler, Job, Progress, words
from lance_nb.explorer.picture_view import View
from lance_nb.explorer.session import RequestHandlers, Session, place_of
from lance_nb.explorer.source import Source, writable_dataset
from lance_nb.explorer.stage import picture, row_sources
from lance_nb.explorer.stage.act_review import ActReview, with_screen, with_staged
from lance_nb.explorer.stage.actions import ACTION_VERBS
from lance_nb.explorer.stage.card import COMMITTED, Card, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json, stage_code, title_of
from lance_nb.explorer.stage.edit_execution import check_edit, placement_of
from lance_nb.explorer.stage.edit_forms import EditForm, form_choices
from lance_nb.explorer.stage.staging_area import StagingArea, record, staging_area_of
from lance_nb.explorer.stage.unfinished_jobs import forget_job, resume_job, unfinished_jobs
from lance_nb.explorer.version_refs import MAIN
from lance_nb.explorer.widget import LanceWidget

MAX_MESSAGE_CHARS = 1000


class StagePanel(LanceWidget):
    """Changes of a dataset that are looked at before they are committed."""

    entry: ClassVar[str] = "stage/stage.js"
    parts: ClassVar[tuple[str, ...]] = ("card",)
    view: ClassVar[View] = picture.VIEW

    def __init__(
        self,
        dataset: Source | Stage | LanceError,
        *,
        height: int | None = None,
        read_only: bool = False,
    ) -> None:
        """Show what is staged on a dataset, or a stage that was made in code as a card there."""
        if isinstance(dataset, Stage):
            dataset = (
                staging_area_of(LanceDataset.from_opened(*dataset.opened)).adopt(dataset).dataset
            )
        super().__init__(dataset, height=height, read_only=read_only)

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, Handler]:
        """Return the requests about staged changes."""
        return StageHandlers(session).handlers()


class StageHandlers(RequestHandlers):
    """Handlers about staged changes."""

    prefix: ClassVar[str] = "stage"

    def _dataset(self, args: Mapping[str, Any]) -> LanceDataset:
        return writable_dataset(self.session.open(place_of(args)))

    @property
    def _area(self) -> StagingArea:
        return staging_area_of(writable_dataset(self.session.dataset))

    def on_menu(self, args: Mapping[str, Any]) -> Answer:
        """Return the verbs and what their forms offer."""
        dataset = self._dataset(args)
        self._area.drop_foreign_cards(dataset)
        return Answer(form_choices(dataset, row_sources.notebook_variables()))

    def on_check(self, args: Mapping[str, Any]) -> Answer:
        """Check a form while it is filled in."""
        form = _form_of(args)
        dataset = self._dataset(args)
        if "source" in form.args:
            row_sources.check_rows(form.args["source"], row_sources.notebook_variables())
        note = check_edit(dataset, form)
        if form.verb in ACTION_VERBS:
            return Answer({"note": note, "code": stage_code(form), "where": None})
        where = placement_of(dataset, form, row_sources.notebook_variables())
        code = stage_code(form, engine=where.name)
        return Answer({"note": note, "code": code, "where": where.to_json()})

    def on_cards(self, args: Mapping[str, Any]) -> Answer:
        """Return the cards; those that have to be compared with newer commits say so."""
        area = self._area
        for card in area.open_cards if area.running is None else ():
            card.check_outdated()
        return Answer({"area": self._area_json(area)})

    def on_forecast(self, args: Mapping[str, Any]) -> Job:
        """Compare the cards with what others have committed since, and with the expectations."""
        area = self._area

        def work(progress: Progress) -> Answer:
            for card in area.open_cards if area.running is None else ():
                if card.is_stale():
                    card.refresh_meetings(progress)
                card.check_expectations(progress)
            return Answer({"area": self._area_json(area)})

        return Job(work)

    def on_running(self, args: Mapping[str, Any]) -> Answer:
        """Return the progress of the running work."""
        running = self._area.running
        return Answer({"running": None if running is None else asdict(running)})

    def on_add(self, args: Mapping[str, Any]) -> Job:
        """Stage an edit."""
        form, dataset = _form_of(args), self._dataset(args)
        variables = row_sources.notebook_variables()
        return self._work(
            "stage", lambda area, reporter: area.add(dataset, form, variables, reporter)
        )

    def on_prepare(self, args: Mapping[str, Any]) -> Job:
        """Execute the edit of a card, on another engine if one is named."""
        card_id, engine = _id_of(args), args.get("engine")
        where = None if engine is None else words({"engine": engine}, "engine", 20)
        return self._work("prepare", lambda area, reporter: area.prepare(card_id, reporter, where))

    def on_rerun(self, args: Mapping[str, Any]) -> Job:
        """Re-run a card on the newest version."""
        card_id = _id_of(args)
        return self._work("re-run", lambda area, reporter: area.rerun(card_id, reporter))

    def on_commit(self, args: Mapping[str, Any]) -> Job:
        """Commit one card."""
        card_id, message = _id_of(args), _message_of(args)
        seen = words({"seen": args.get("seen") or ""}, "seen", 40)
        typed = words({"typed": args.get("typed") or ""}, "typed", 200).strip()

        def commit(area: StagingArea, reporter: ProgressReporter) -> list[Card]:
            card = area.card(card_id)
            review = self._review(area, card) if card.is_open else None
            if review is not None and review.is_final and review.key != seen:
                raise InvalidInputError(
                    "the consequences of this card have changed; look at them again"
                )
            return [area.commit(card_id, message, reporter, typed)]

        return self._work("commit", commit)

    def on_all(self, args: Mapping[str, Any]) -> Job:
        """Commit all cards, one by one or together."""
        message, together = _message_of(args), args.get("together") is True

        def commit(area: StagingArea, reporter: ProgressReporter) -> list[Card]:
            if together:
                return area.commit_together(message, reporter)
            return area.commit_each(message, reporter)

        return self._work("commit", commit)

    def on_look(self, args: Mapping[str, Any]) -> Answer:
        """Check whether a commit with an unknown outcome succeeded."""
        card = self._area.card(_id_of(args))
        card.look_again()
        record(card)
        return self._answer([card])

    def on_remove(self, args: Mapping[str, Any]) -> Answer:
        """Remove a card."""
        self._area.remove(_id_of(args))
        return self._answer()

    def on_earlier(self, args: Mapping[str, Any]) -> Answer:
        """Move a card one position up."""
        self._area.earlier(_id_of(args))
        return self._answer()

    def on_resume(self, args: Mapping[str, Any]) -> Job:
        """Finish a job that was interrupted."""
        job_id = _id_of(args)
        self.session.check_unlocked()
        area, dataset = self._area, writable_dataset(self.session.dataset)

        def work(progress: Progress) -> Answer:
            reporter = ProgressReporter("resume", progress)
            with area.alone(reporter):
                result = resume_job(dataset, job_id, reporter)
            area_json = self._area_json(area)
            return Answer({"area": area_json, "branch": result.branch, "version": result.version})

        return Job(work)

    def on_forget(self, args: Mapping[str, Any]) -> Answer:
        """Remove a job that was interrupted."""
        self.session.check_unlocked()
        forget_job(writable_dataset(self.session.dataset), _id_of(args))
        return self._answer()

    def _work(self, title: str, do: Callable[[StagingArea, ProgressReporter], object]) -> Job:
        """Return a job for work that may write."""
        self.session.check_unlocked()
        area = self._area

        def work(progress: Progress) -> Answer:
            done = do(area, ProgressReporter(title, progress))
            return self._answer(done if isinstance(done, list) else ())

        return Job(work)

    def _answer(self, committed: Sequence[Card] = ()) -> Answer:
        """Return the cards, and the newest version that was created."""
        versioned_cards = [card for card in committed if card.version is not None]
        self._leave_removed(committed)
        result: dict[str, Any] = {"area": self._area_json(self._area)}
        if versioned_cards:
            result |= {
                "branch": versioned_cards[-1].dataset.branch,
                "version": versioned_cards[-1].version,
            }
        elif any(card.done for card in committed):
            result |= self.session.parts_json(("timeline", "card"))
            place = self.session.dataset
            result["place"] = {"branch": place.branch, "version": place.version}
        return Answer(result)

    def _leave_removed(self, committed: Sequence[Card]) -> None:
        """Go to a version that is there if a card has removed the one on screen."""
        for card in committed:
            review, branch = card.review, self.session.dataset.branch
            if card.state != COMMITTED or review is None:
                continue
            if review.branch == branch and self.session.dataset.version in review.removed:
                self.session.travel(branch or MAIN)
            elif branch and card.form.verb == "branch" and card.form.args["name"] == branch:
                self.session.travel(MAIN)
                self.session.forget(branch)

    def _review(self, area: StagingArea, card: Card) -> ActReview | None:
        """Return the review of a card, with what only this view knows."""
        review = card.review
        if review is None or not review.removed:
            return review
        screen = self.session.dataset
        newest = text.ref_label(card.dataset.branch, card.dataset.version)
        other_cards = [
            (title_of(open_card.form), open_card.dataset.branch, open_card.dataset.version)
            for open_card in area.open_cards
            if open_card is not card
        ]
        return with_staged(
            with_screen(review, (screen.branch, screen.version), newest), other_cards
        )

    def _area_json(self, area: StagingArea) -> dict[str, Any]:
        cards = [card_json(card, self._review(area, card)) for card in area.cards]
        return {
            "cards": cards,
            "not_together": _why(area),
            "not_each": area.why_not_each(),
            "unfinished": unfinished_jobs(writable_dataset(self.session.dataset)),
        }


def _form_of(args: Mapping[str, Any]) -> EditForm:
    return EditForm.of(args.get("verb"), args.get("args"), args.get("engine", "auto"))


def _id_of(args: Mapping[str, Any]) -> str:
    return words(args, "id", 40)


def _message_of(args: Mapping[str, Any]) -> str | None:
    return words({"message": args.get("message") or ""}, "message", MAX_MESSAGE_CHARS) or None


def _why(area: StagingArea) -> str:
    try:
        return area.why_not_together()
    except LanceError as error:
        return str(error)
