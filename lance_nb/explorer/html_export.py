"""Export an explorer as one HTML file that needs no kernel, no network and no other file.

Layout of the file: a content security policy that allows the one script and the one style sheet in
it by their hashes, and the modules that the script makes of text; the picture of what is on screen
(``pictures``), which is seen until the script runs, and for good where scripts are disabled; the
snapshot as a block of JSON in which ``<`` is escaped; the modules of ``snapshot_app.js``, which
shows the explorer over the snapshot, as another.

Layout of ``Snapshot.to_json``: ``screens`` (see ``session.screen``) of the versions that are kept,
the one shown first; ``answers`` by the keys that ``js/snapshot_kernel.js`` looks up: the type of
the request, branch and version, and what else distinguishes such requests (a fragment, a name);
``bars`` of versions (for the timeline); ``choices`` of refs; ``about`` (when it was made).

Limits: ``MAX_VERSIONS`` versions, ``MAX_ROWS`` rows of each, ``MAX_FRAGMENTS`` fragments of the
version shown, ``MAX_BARS`` versions described, the columns of ``MAX_PROFILED`` versions profiled,
``MAX_BYTES`` in all: what comes later is left out.
Not supported: writing, and whatever reads data beyond the first rows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from lance_nb.errors import LanceError
from lance_nb.explorer import assets, text
from lance_nb.explorer.history.versions import version_bars
from lance_nb.explorer.html_page import explorer_page
from lance_nb.explorer.messages import Handler, handle
from lance_nb.explorer.refs.ref_list import MAX_HEADS
from lance_nb.explorer.rows.row_page import MAX_COLUMNS, Window
from lance_nb.explorer.session import Place, Session
from lance_nb.explorer.source import Source
from lance_nb.explorer.widget import HeaderHandlers

MAX_VERSIONS = 40
MAX_ROWS = 500
MAX_FRAGMENTS = 20
MAX_PROFILED = 5
MAX_BARS = 400
MAX_REFS = 20
MAX_BYTES = 12_000_000
_NEWEST = 20
_ALL = 2**52
_PROFILED = 16
ENTRY = "snapshot_app.js"


class Snapshot:
    """The recorded screens and answers; ``left`` bytes may still be added."""

    def __init__(self) -> None:
        self.screens: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.bars: dict[str, dict[int, Any]] = {}
        self.choices: list[Any] = []
        self.left = MAX_BYTES

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-able values."""
        return {
            "screens": self.screens,
            "answers": self.answers,
            "bars": self.bars,
            "choices": self.choices,
            "about": text.moment(datetime.now(UTC)),
        }

    def afford(self, value: Any) -> bool:
        """Subtract the size of a value from the bytes left; return False if it is too large."""
        cost = len(json.dumps(value))
        if cost > self.left:
            return False
        self.left -= cost
        return True


def take_snapshot(
    dataset: Source,
    handlers_of: Any,
    parts: Sequence[str],
    *,
    versions: Sequence[int | str] | None = None,
    rows: int = 50,
) -> Snapshot:
    """Record what an explorer shows of ``dataset``.

    ``handlers_of(session)`` gives the requests of the views; ``versions`` are refs, by default the
    newest of the branch, the tagged ones, and the newest of other branches. Raises LanceError for
    a ref that does not exist.
    """
    session = Session(dataset, read_only=True)
    snapshot = Snapshot()
    handlers = session.handlers() | session.keep(HeaderHandlers).handlers() | handlers_of(session)
    current_place = (dataset.branch, dataset.version)
    places = [
        current_place,
        *(place for place in _places(dataset, versions) if place != current_place),
    ]
    window = Window(limit=max(1, min(rows, MAX_ROWS)), num_columns=MAX_COLUMNS)
    for number, place in enumerate(places[:MAX_VERSIONS]):
        _keep_screen(snapshot, session, place, parts=parts, window=window)
        for kind, args in _version_requests(place, profiled=number < MAX_PROFILED):
            _keep_answer(snapshot, handlers, place, kind, args)
    session.stand(current_place)
    _keep_shown(snapshot, session, handlers, current_place)
    _keep_bars(snapshot, dataset)
    return snapshot


def _places(dataset: Source, versions: Sequence[int | str] | None) -> list[Place]:
    if versions is not None:
        refs = list(versions)[:MAX_VERSIONS]
        opened = (dataset.checkout_version(ref) for ref in refs)
        return list(dict.fromkeys((source.branch, source.version) for source in opened))
    own = [(dataset.branch, number) for number in reversed(dataset.version_numbers()[-_NEWEST:])]
    readable = getattr(dataset.tags, "readable", dataset.tags.list)
    tags = list(readable().values())[:MAX_REFS]
    tagged = [(tag_record["branch"], tag_record["version"]) for tag_record in tags]
    heads = [_head(dataset, name) for name in (None, *list(dataset.branches.list())[:MAX_REFS])]
    return list(dict.fromkeys([*own, *tagged, *(head for head in heads if head is not None)]))


def _head(dataset: Source, branch: str | None) -> Place | None:
    try:
        dataset_of_branch = dataset.checkout_version((branch, None))
    except LanceError:
        return None  # a branch without versions has nothing to show
    return dataset_of_branch.branch, dataset_of_branch.version


def _keep_screen(
    snapshot: Snapshot, session: Session, place: Place, parts: Sequence[str], window: Window
) -> None:
    try:
        session.stand(place)
    except LanceError:
        return  # a tag may name a version that was cleaned up
    screen = session.screen(parts, window) | {"locked": None, "io": None, "kept": True}
    rows = screen.get("rows")
    if rows and "page" in rows:
        page = rows["page"]
        whole = {"rows": rows["num_rows"], "columns": rows["num_columns"]}
        size = {"num_rows": page["num_rows"], "num_columns": len(page["columns"])}
        screen["rows"] = rows | size | {"whole": whole}
    screen = plain_json(screen)
    if snapshot.afford(screen):
        snapshot.screens.append(screen)


def _version_requests(place: Place, *, profiled: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the requests that views send for every version."""
    place_args = {"branch": place[0], "version": place[1]}
    yield "storage.map", place_args | {"first": 0, "stop": _ALL}
    yield "storage.health", place_args
    if profiled:
        yield "rows.profile", place_args | {"first": 0, "count": _PROFILED, "num_rows": 2**40}
    if place[1] > 1:
        before = place_args | {"version": place[1] - 1}
        yield "changes.counts", {"a": before, "b": place_args, "key": None}


def _keep_shown(
    snapshot: Snapshot, session: Session, handlers: dict[str, Handler], current_place: Place
) -> None:
    """Record the answers about the version shown only, and about all refs."""
    branch, version = current_place
    place_args = {"branch": branch, "version": version}
    opened = getattr(session.dataset, "opened", None)
    ids = [] if opened is None else opened[1].manifest.fragments.counts().ids[:MAX_FRAGMENTS]
    for fragment in map(int, ids):
        _keep_answer(
            snapshot,
            handlers,
            current_place,
            "storage.fragment",
            place_args | {"fragment": fragment},
            fragment,
        )
    listed = {"text": "", "sort": "name", "descending": False, "first": 0, "count": 100}
    for kind in ("branch", "tag"):
        page = listed | {"kind": kind, "fresh": False}
        lines = _keep_answer(snapshot, handlers, None, "refs.list", page, kind).get("lines", [])
        for line in lines[:MAX_REFS]:
            request = {"kind": kind, "name": line["name"]}
            _keep_answer(snapshot, handlers, None, "refs.show", request, kind, line["name"])
        if kind == "branch":
            names = [line["name"] for line in lines[:MAX_HEADS]]
            _keep_answer(snapshot, handlers, None, "refs.heads", {"names": names})
    reply, _ = handle({"id": "1", "type": "refs", "args": {"text": ""}}, handlers)
    snapshot.choices = reply["result"]["choices"] if reply["ok"] else []


def _keep_answer(
    snapshot: Snapshot,
    handlers: dict[str, Handler],
    place: Place | None,
    kind: str,
    args: dict[str, Any],
    *apart: object,
) -> dict[str, Any]:
    """Send a request and record the answer under its key; an error is left out."""
    if kind not in handlers:
        return {}
    reply, buffers = handle({"id": "1", "type": kind, "args": args}, handlers)
    if not reply["ok"]:
        return {}
    answer = {"result": reply["result"], "buffers": [plain_json(buffer) for buffer in buffers]}
    where = [] if place is None else [place[0] or "", place[1]]
    if snapshot.afford(answer):
        snapshot.answers["|".join(map(str, [kind, *where, *apart]))] = answer
    result: dict[str, Any] = reply["result"]
    return result


def _keep_bars(snapshot: Snapshot, dataset: Source) -> None:
    numbers = dataset.version_numbers()
    bars = [asdict(bar) for bar in version_bars(dataset, numbers[-MAX_BARS:], numbers)]
    if snapshot.afford(bars):
        snapshot.bars[dataset.branch or ""] = {bar["version"]: bar for bar in bars}


def plain_json(value: Any) -> Any:
    """Return the JSON form of a value, binary parts marked."""
    if isinstance(value, (bytes, memoryview)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: plain_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(inner) for inner in value]
    return value


def snapshot_page(title: str, picture: str, snapshot: Snapshot, height: int) -> str:
    """Return the file's text. ``picture``, an SVG, is shown until the script has started."""
    data = snapshot.to_json() | {"height": height}
    views = assets.page_views(ENTRY)
    sources = "img-src blob: data:"
    return explorer_page(
        text.name(title), views, ("snapshot", data), sources=sources, picture=picture
    )
