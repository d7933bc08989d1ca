"""The base of every widget: a synced first screen, the common requests, and a static rendering.

Layout of the synced traits: ``screen`` (the models of this widget's parts, see ``session.screen``;
binary row buffers inside), ``height`` in pixels, and ``_entry``, ``_views``, ``_code`` and
``_code_key``, which lead to the ES modules (see ``assets``). The screen is kept under about 200 KB,
so that a notebook executed without a browser re-renders from it.

Saved notebooks. A saved output holds no widget state, and a trusted notebook reopened without its
kernel shows an error in place of the widget, even when the same output carries HTML. So a widget
displays itself as three outputs: the widget; a picture as SVG, which viewers without scripts show,
too (GitHub, nbviewer); the same as text, folded. Style rules in the last one hide the other two for
as long as a live widget precedes them, and the widget when there is none. When the browser says
that something else is on its screen (``shown``), the picture is replaced, so that a notebook keeps
what was on screen when it was saved.

Requests that every view may send:

================ ========================================== ====================================
request          args                                       result
================ ========================================== ====================================
shown            see picture_view                           nothing; the picture is drawn anew
buffers          as_text                                    nothing; buffers come as ``base64``
views.send                                                  modules, sheets: see assets
refs             text                                       choices (see models.refs)
news             latest, mark                               see below; with a new mark also the
                                                            parts ``timeline`` and ``card``
lock             locked                                     locked
biography.find   branch, version, row, query                fragment, offset, row_id
biography.keys   branch, version, text                      columns that may be a key
biography.steps  branch, version, fragment, offset, key,    see models.row_history
                 upto (long work)
================ ========================================== ====================================

``news`` says, from listings alone, whether other writers have changed the dataset: ``latest``
(newest version of the branch), ``added`` (how many versions are newer than the one known to the
browser), ``gone`` (the version shown was cleaned up), ``mark`` (a text that changes whenever a
version, a tag or a branch is created or deleted, or a tag is written). If the branch shown, or the
whole dataset, no longer exists, ``lost`` says so, and ``way`` is a version to go to, if there is
one: ``{branch, version, label}``.

Limits: keyword arguments are checked by the signatures; unknown ones are a TypeError. A changed
note of a branch is not noticed, because its name stays the same.
"""

from __future__ import annotations

import base64
import hashlib
import time
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from lance_nb.dataset.display import in_marimo, ipython_shell
from lance_nb.errors import InvalidInputError, LanceError, NotFoundError, NotSupportedError
from lance_nb.explorer import assets, messages, text
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.assets import ViewCode
from lance_nb.explorer.changes.change_summary import key_of
from lance_nb.explorer.drawing import svg_of
from lance_nb.explorer.error_card import error_card
from lance_nb.explorer.messages import Answer, Job, JobRunner, Progress, integer, words
from lance_nb.explorer.picture_view import View, draw_error
from lance_nb.explorer.rows.row_history import RowHistoryCache, RowPlace, place_of_row
from lance_nb.explorer.rows.row_page import Window
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.session import (
    FIRST_WINDOW,
    MAX_COUNT,
    RequestHandlers,
    Session,
    Target,
    check_target,
    place_of,
    window_of,
)
from lance_nb.explorer.source import Source, compared_source
from lance_nb.explorer.static_rendering import StaticRendering, behind, render_error, render_parts
from lance_nb.explorer.version_refs import RefNames, open_source, ref_choices, ref_names
from lance_nb.storage import meter
from lance_nb.value_classes import dataclass

MIN_HEIGHT = 200
MAX_HEIGHT = 2000
MAX_ENTRY_CHARS = 64


class LanceWidget(anywidget.AnyWidget):
    """A view of one dataset; a subclass names its ES module and the parts of the screen."""

    entry: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]
    default_height: ClassVar[int] = 380
    handlers_type: ClassVar[type[RequestHandlers]] = (
        RequestHandlers  # handles the requests of the view itself
    )
    # Whether long work runs in threads of its own; a page without a kernel has it done at once.
    jobs_beside: ClassVar[bool] = True

    view: ClassVar[View]  # how it is drawn for a saved notebook

    _buffers_as_text: bool = False
    _jobs: JobRunner | None = None  # a widget that was never made is closed as well

    _esm = assets.LOADER
    _entry = traitlets.Unicode().tag(sync=True)
    _views = traitlets.Unicode().tag(sync=True)
    _code = traitlets.Dict().tag(sync=True)
    _code_key = traitlets.Unicode().tag(sync=True)
    screen = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(default_height).tag(sync=True)

    def __init__(
        self,
        dataset: Target | LanceError | None,
        *,
        height: int | None = None,
        read_only: bool = False,
    ) -> None:
        """Show a dataset, given as such or by path or URI; or why there is none to show.

        None is for views that need no dataset; they set ``screen`` themselves.
        """
        height = self._checked(height)
        before, started = meter.reading(), time.perf_counter()
        self._error: LanceError | None = None
        self._session: Session | None = None
        self._picture: DisplayHandle | None = None
        screen: dict[str, Any] = {"error": None}
        if dataset is not None and not isinstance(dataset, LanceError):
            dataset = _opened(dataset)
        if isinstance(dataset, LanceError):
            self._error = dataset
            screen = {"error": error_card(dataset).to_json()}
        elif dataset is not None:
            self._session = Session(dataset, read_only=read_only)
            screen = self._screen_of(self._session)
        screen["io"] = messages.cost_since(before, started)
        if in_marimo():
            views: dict[str, Any] = {"_code": assets.view_code(self.entry)}
        else:
            views = {"_views": f"IPY_MODEL_{ViewCode.of(self.entry).model_id}"}
        super().__init__(
            screen=screen,
            height=height,
            _entry=self.entry,
            _code_key=assets.code_key(),
            **views,
        )
        self.on_msg(self._on_message)

    def __reduce__(self) -> NoReturn:
        raise NotSupportedError(
            "a widget belongs to one notebook and cannot be pickled; pickle its dataset (.dataset)"
        )

    @classmethod
    def _checked(cls, height: int | None) -> int:
        if height is None:
            return cls.default_height
        if not MIN_HEIGHT <= height <= MAX_HEIGHT:
            raise InvalidInputError(f"height must be between {MIN_HEIGHT} and {MAX_HEIGHT} pixels")
        return height

    @property
    def error(self) -> LanceError | None:
        """Why the dataset could not be opened, or None."""
        return self._error

    @property
    def dataset(self) -> Source:
        """The dataset at the version shown."""
        return self._open_session().dataset

    def travel(self, ref: int | str) -> None:
        """Show another version.

        Args:
            ref: a number, a tag, a branch, ``branch:number`` or ``HEAD~n``.

        Raises VersionNotFoundError, RefNotFoundError, InvalidRefError.
        """
        self._go({"ref": str(ref)})

    def close(self) -> None:
        """Close the widget and release the dataset; what the page shows stays."""
        self._session = None
        if self._jobs is not None:
            self._jobs.close()
        super().close()

    def _open_session(self) -> Session:
        if self._session is None:
            raise InvalidInputError(
                "this widget has no dataset: it was closed, or could not be opened"
            )
        return self._session

    def _on_message(self, _widget: object, content: object, _buffers: object) -> None:
        result = messages.begin(content, self._handlers())
        if isinstance(result[1], messages.Job):
            self._started().start(*result)
            return
        self._reply(*result)
        if isinstance(content, Mapping) and content.get("type") == "shown":
            self._draw_again()

    def _handlers(self) -> dict[str, messages.Handler]:
        """Return the handlers of all requests that can be answered now."""
        session = self._session
        handlers: dict[str, messages.Handler] = {
            "ready": lambda _args: messages.Answer(),
            "cancel": self._on_cancel,
            "buffers": self._on_buffers,
            "views.send": self._on_send_views,
            "views.load": self._on_load_views,
            "travel": self._go,
        }
        if session is not None:
            frame, lives = session.keep(HeaderHandlers), session.keep(RowHistoryHandlers)
            handlers |= session.handlers() | frame.handlers() | lives.handlers()
            handlers |= self.request_handlers(session)
        return handlers

    def _reply(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        if not buffers:
            self.send(content, buffers=buffers)
            return
        content = {**content, "num_buffers": len(buffers)}
        if self._buffers_as_text:
            content["base64"] = [base64.b64encode(buffer).decode() for buffer in buffers]
            buffers = []
        self.send(content, buffers=buffers)

    def _on_buffers(self, args: Mapping[str, Any]) -> messages.Answer:
        """Send buffers as text from now on: the host of the page does not deliver others."""
        self._buffers_as_text = args.get("as_text") is True
        return messages.Answer()

    def _on_send_views(self, _args: Mapping[str, Any]) -> messages.Answer:
        """Send the views of this widget, for a host that has not loaded their model."""
        return messages.Answer(assets.view_code(self.entry))

    def _on_load_views(self, args: Mapping[str, Any]) -> messages.Answer:
        """Send what is opened for the first time, and the key of the code in the page."""
        entry = messages.words(args, "entry", MAX_ENTRY_CHARS)
        if entry not in assets.LATE_VIEWS:
            raise InvalidInputError(f"no view is loaded later as {entry!r}")
        code = assets.view_code(entry, without=self.entry)
        return messages.Answer({"key": assets.code_key(), **code})

    @classmethod
    def request_handlers(cls, session: Session) -> dict[str, messages.Handler]:
        """Return the handlers of the view's own requests, in addition to those of every view."""
        return cls.handlers_type(session).handlers()

    def _on_cancel(self, args: Mapping[str, Any]) -> messages.Answer:
        request_id = messages.words(args, "id", messages.MAX_ID_CHARS)
        return messages.Answer({"cancelled": self._started().cancel(request_id)})

    def _started(self) -> JobRunner:
        if self._jobs is None:
            self._jobs = JobRunner(self._reply, beside=self.jobs_beside)
        return self._jobs

    def _go(self, args: Mapping[str, Any]) -> messages.Answer:
        session = self._open_session()
        if "ref" in args:
            session.travel(messages.words(args, "ref", refs.MAX_CHARS))
        else:
            session.stand(place_of(args))
        window = args.get("window")
        defaults = {"limit": FIRST_WINDOW.limit, "num_columns": FIRST_WINDOW.num_columns}
        window_asked = window_of(window | defaults) if isinstance(window, dict) else FIRST_WINDOW
        self.screen = self._screen_of(session, window_asked)
        return messages.Answer({"label": self.screen["label"]})

    def _screen_of(self, session: Session, window: Window = FIRST_WINDOW) -> dict[str, Any]:
        """Return the trait ``screen`` for the version that a session is at."""
        return session.screen(self.parts, window)

    def picture(self) -> StaticRendering:
        """Return the static rendering, text and HTML, which a saved notebook keeps."""
        if self._error is not None:
            return render_error(self._error)
        return render_parts(self._open_session().parts.values())

    def to_svg(self) -> str:
        """Return what is on screen as one SVG that needs no script and no other file.

        Examples:
            >>> 'aria-label="Explorer of' in lance_nb.explore(ds).to_svg()
            True
        """
        if self._session is None:
            card = error_card(self._error or InvalidInputError("this widget was closed"))
            return svg_of(card.title, [draw_error(card)])
        return svg_of(self._label(), self.view.panels(self._session, self._session.on_screen))

    def _label(self) -> str:
        """Return what the widget shows, in one line."""
        if self._session is None:
            return f"{type(self).__name__}: {self._error or 'closed'}"
        dataset = self._session.dataset
        place = text.ref_label(dataset.branch, dataset.version)
        return f"{type(self).__name__} of {text.name(dataset.name)} at {place}"

    def __repr__(self) -> str:
        if self._session is None:
            return f"<{type(self).__name__}: {self._error or 'closed'}>"
        return self.picture().text

    def _ipython_display_(self) -> None:
        """Show the widget, followed by what a saved notebook keeps."""
        picture = self.picture()
        if not has_browser():
            display({"text/plain": picture.text}, raw=True)
            return
        self.display_live()
        display({"text/html": behind(picture), "text/plain": picture.text}, raw=True)

    def display_live(self) -> None:
        """Show the widget and its picture; the text that is hidden behind them is still to come."""
        label = {"text/plain": self._label()}
        display(self.live_bundle() | label, raw=True)
        if in_marimo():
            return  # it saves no outputs of this kind
        display_id = None if self._picture is None else self._picture.display_id
        self._picture = display(self._svg_bundle(), raw=True, display_id=display_id or True)

    def _svg_bundle(self) -> dict[str, str]:
        return {"image/svg+xml": self.to_svg(), "text/plain": self._label()}

    def _draw_again(self) -> None:
        """Replace the picture in the notebook by one of what is on screen now."""
        if self._picture is not None and self._has_content():
            self._picture.update(self._svg_bundle(), raw=True)

    def _has_content(self) -> bool:
        """Whether there is more to draw than an error."""
        return self._session is not None

    def live_bundle(self) -> dict[str, Any]:
        """Return the mime bundle that a browser turns into the live widget."""
        bundle: Any = super()._repr_mimebundle_()
        return dict(bundle[0] if isinstance(bundle, tuple) else bundle)


def _opened(target: Target) -> Source | LanceError:
    """Return the dataset, or why it cannot be opened. Raises InvalidInputError for nonsense."""
    check_target(target)
    try:
        return open_source(target)
    except LanceError as error:
        return error


def has_browser() -> bool:
    """Whether outputs of this process reach a browser: true in a Jupyter kernel and in marimo."""
    return in_marimo() or getattr(ipython_shell(), "kernel", None) is not None


MAX_STEPS = 500
MAX_KEYS_SHOWN = 24
_MAX_U32 = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Updates:
    """What has changed since ``mark`` was sent."""

    latest: int
    added: int
    was_removed: bool
    mark: str

    def to_json(self) -> dict[str, Any]:
        """Return the arrivals as JSON-able values."""
        return {
            "latest": self.latest,
            "added": self.added,
            "gone": self.was_removed,
            "mark": self.mark,
        }


def updates_since(names: RefNames, version: int, known_latest: int) -> Updates:
    """Compare the names with what is shown: ``version``, and the newest one known then."""
    numbers = names.numbers
    return Updates(
        latest=numbers[-1] if numbers else 0,
        added=len(numbers) - bisect_right(numbers, known_latest),
        was_removed=version not in numbers[-1:] and version not in set(numbers),
        mark=mark_of(names),
    )


def lost_version(dataset: Source) -> dict[str, Any]:
    """Return, as JSON-able values, what no longer exists and which version to go to."""
    state = {"latest": dataset.version, "added": 0, "gone": True, "mark": "lost", "way": None}
    if dataset.branch is not None:
        try:
            main = dataset.checkout_version((None, None))
        except NotFoundError:
            pass  # the whole dataset was deleted
        else:
            label = text.ref_label(None, main.version)
            state["way"] = {"branch": None, "version": main.version, "label": label}
            return state | {"lost": f"branch {text.name(dataset.branch)} was deleted"}
    return state | {"lost": "the dataset no longer exists"}


def mark_of(names: RefNames) -> str:
    """Return a short text that tells two states of the names apart."""
    state_text = repr(
        (len(names.numbers), names.numbers[-1:], names.branches, sorted(names.tags.items()))
    )
    return hashlib.blake2b(state_text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class HeaderHandlers(RequestHandlers):
    """Handlers of the header; keeps the names that refs are completed from."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._names: RefNames | None = None

    def on_refs(self, args: Mapping[str, Any]) -> Answer:
        """Complete a typed ref."""
        typed = words(args, "text", refs.MAX_CHARS)
        names = self._names
        if not typed or names is None or names.branch != self.session.dataset.branch:
            names = self._names = ref_names(self.session.dataset)
        choices = ref_choices(names, typed)
        return Answer({"choices": [choice.to_json() for choice in choices]})

    def on_news(self, args: Mapping[str, Any]) -> Answer:
        """Say what other writers have changed."""
        session = self.session
        known_latest = integer(args, "latest", low=0, high=MAX_COUNT)
        try:
            names = self._names = ref_names(session.dataset)
        except NotFoundError:
            return Answer(lost_version(session.dataset))
        news = updates_since(names, session.dataset.version, known_latest)
        result = news.to_json()
        known_mark = words(args, "mark", 64)
        if news.mark != known_mark and (known_mark or news.added):
            result |= session.parts_json(("timeline", "card"))
        return Answer(result)

    def on_lock(self, args: Mapping[str, Any]) -> Answer:
        """Open or shut the lock."""
        locked = args.get("locked")
        if not isinstance(locked, bool):
            raise InvalidInputError("locked must be true or false")
        self.session.lock(locked=locked)
        return Answer({"locked": self.session.locked})


class RowHistoryHandlers(RequestHandlers):
    """Handlers of row histories; searches are kept between requests."""

    prefix: ClassVar[str] = "biography"

    def on_keys(self, args: Mapping[str, Any]) -> Answer:
        """Return columns that may identify a row."""
        needle = words(args, "text", 300).casefold()
        schema = self.session.open(place_of(args)).schema
        fields = [field for field in schema if needle in field.name.casefold()]
        columns = [
            {"name": field.name, "label": text.name(field.name), "type": type_label(field.type)}
            for field in fields[:MAX_KEYS_SHOWN]
        ]
        return Answer({"columns": columns, "found": len(fields)})

    def on_find(self, args: Mapping[str, Any]) -> Answer:
        """Return where a row of the grid lies."""
        source = self.session.open(place_of(args))
        row = integer(args, "row", low=0, high=MAX_COUNT)
        table = self.session.query(args).rows(source, ["_rowid", "_rowaddr"], row, 1)
        fragment, offset, row_id = place_of_row(table)
        return Answer({"fragment": fragment, "offset": offset, "row_id": row_id})

    def on_steps(self, args: Mapping[str, Any]) -> Job:
        """Return the life of a row, version by version."""
        branch, version = place_of(args)
        source = compared_source(self.session.open((branch, version)))
        row = RowPlace(
            branch,
            version,
            integer(args, "fragment", low=0, high=_MAX_U32),
            offset=integer(args, "offset", low=0, high=_MAX_U32),
            key=key_of(args),
        )
        upto = integer(args, "upto", low=1, high=MAX_STEPS)
        lives = self.session.keep(RowHistoryCache)

        def work(progress: Progress) -> Answer:
            return Answer(lives.steps(source, row, upto, progress))

        return Job(work)
