"""The base of every widget: a synced first screen, request handling, and a static rendering.

Layout of the synced traits: ``screen`` (the models of this widget's parts, see ``session.screen``;
binary row buffers inside), ``height`` in pixels, ``_views`` and ``_views_key``, which lead to the
ES module (see ``view_module``). The screen is kept under about 200 KB, so that a notebook executed
without a browser re-renders from it.

Saved notebooks. A saved output holds no widget state, and a trusted notebook reopened without its
kernel shows an error in place of the widget, even when the same output carries HTML. So a widget
displays itself as two outputs: the widget, and a static rendering that a style rule hides for as
long as a live widget precedes it.

Limits: keyword arguments are checked by the signatures; unknown ones are a TypeError.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.display import HTML, display

from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.explorer import messages, view_module
from lance_nb.explorer.messages import JobRunner
from lance_nb.explorer.models import refs
from lance_nb.explorer.models.error_card import error_card
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.session import (
    FIRST_WINDOW,
    RequestHandlers,
    Session,
    Target,
    check_target,
    open_source,
    place_of,
    window_of,
)
from lance_nb.explorer.shared_handlers import HeaderHandlers, RowHistoryHandlers
from lance_nb.explorer.static_rendering import StaticRendering, render_error, render_parts
from lance_nb.explorer.view_module import ViewModule
from lance_nb.storage import meter

MIN_HEIGHT = 200
MAX_HEIGHT = 2000

# A live widget hides the second output; a widget without a kernel is hidden itself.
_STYLE = """<style>
.jp-OutputArea-child:has(.lnb-live) + .jp-OutputArea-child:has(.lnb-static) { display: none }
.jp-OutputArea-child:not(:has(.lnb-live)):has(+ .jp-OutputArea-child .lnb-static) { display: none }
</style>"""


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

    _jobs: JobRunner | None = None  # a widget that was never made is closed as well

    _esm = view_module.LOADER
    _views = traitlets.Unicode().tag(sync=True)
    _views_key = traitlets.Unicode().tag(sync=True)
    screen = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(default_height).tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Link the view's module and style sheets, once per class that names an entry.

        Adding a trait to a widget makes a subclass as well; that one names none.
        """
        if "entry" in cls.__dict__:
            view_module.texts(cls.entry)
        super().__init_subclass__(**kwargs)

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
        screen: dict[str, Any] = {"error": None}
        if dataset is not None and not isinstance(dataset, LanceError):
            dataset = _opened(dataset)
        if isinstance(dataset, LanceError):
            self._error = dataset
            screen = {"error": error_card(dataset).to_json()}
        elif dataset is not None:
            self._session = Session(dataset, read_only=read_only)
            screen = self._session.screen(self.parts)
        screen["io"] = messages.cost_since(before, started)
        super().__init__(
            screen=screen,
            height=height,
            _views=f"IPY_MODEL_{ViewModule.of(self.entry).model_id}",
            _views_key=view_module.key_of(self.entry),
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
        """Show another version: a number, a tag, a branch, ``branch:number`` or ``HEAD~n``."""
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
        session = self._session
        handlers: dict[str, messages.Handler] = {
            "ready": lambda _args: messages.Answer(),
            "cancel": self._on_cancel,
            "travel": self._go,
        }
        if session is not None:
            frame, lives = session.keep(HeaderHandlers), session.keep(RowHistoryHandlers)
            handlers |= session.handlers() | frame.handlers() | lives.handlers()
            handlers |= self.request_handlers(session)
        found = messages.begin(content, handlers)
        if isinstance(found[1], messages.Job):
            self._started().start(*found)
        else:
            self._reply(*found)

    def _reply(self, content: Mapping[str, Any], buffers: list[bytes]) -> None:
        self.send(content, buffers=buffers)

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
        asked = window_of(window | defaults) if isinstance(window, dict) else FIRST_WINDOW
        self.screen = session.screen(self.parts, asked)
        return messages.Answer({"label": self.screen["label"]})

    def picture(self) -> StaticRendering:
        """Return the static rendering, text and HTML, which a saved notebook keeps."""
        if self._error is not None:
            return render_error(self._error)
        return render_parts(self._open_session().parts.values())

    def __repr__(self) -> str:
        if self._session is None:
            return f"<{type(self).__name__}: {self._error or 'closed'}>"
        return self.picture().text

    def _ipython_display_(self) -> None:
        """Show the widget, followed by the static rendering that a saved notebook keeps."""
        picture = self.picture()
        if not has_browser():
            display({"text/plain": picture.text}, raw=True)
            return
        display(self.live_bundle() | {"text/plain": picture.text}, raw=True)
        display(HTML(behind(picture)))

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


def behind(picture: StaticRendering) -> str:
    """Return the HTML of a rendering that is hidden for as long as a live widget precedes it."""
    return f'{_STYLE}<div class="lnb-static">{picture.html}</div>'


def has_browser() -> bool:
    """Whether outputs of this process reach a browser: true in a Jupyter kernel."""
    shell = get_ipython()
    return getattr(shell, "kernel", None) is not None
