"""When loops are compiled."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.compiled import (
    COST_SECONDS,
    Mode,
    forced,
    kernel,
    pays,
    wait_until_ready,
)


@pytest.fixture(autouse=True)
def fresh_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_state", compiled._State())


def arguments(words: str = "u8") -> tuple[np.ndarray, ...]:
    """Return what ``decode_fsst`` takes: one code, its symbol and length, room."""
    return (
        np.zeros(1, np.uint8),
        np.array([7], words),
        np.ones(1, np.uint8),
        np.zeros(1, np.uint64),
    )


def test_little_work_never_pays() -> None:
    assert not pays(COST_SECONDS / 100)


def test_missed_savings_add_up_until_they_pay() -> None:
    assert [pays(COST_SECONDS / 4) for _ in range(6)] == [False] * 3 + [True] * 3
    assert pays(0.0)


def test_nobody_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    began, release = threading.Event(), threading.Event()
    compile_for = compiled._compile_for

    def slowly(loop: object, args: tuple[np.ndarray, ...]) -> None:
        began.set()
        assert release.wait(30)
        compile_for(loop, args)

    monkeypatch.setattr(compiled, "_compile_for", slowly)
    args = arguments()
    assert kernel("decode_fsst", args) is None
    assert began.wait(60)
    assert kernel("decode_fsst", args) is None  # still: numpy goes on meanwhile
    release.set()
    wait_until_ready()
    loop = kernel("decode_fsst", args)
    assert loop is not None
    loop(*args)
    assert args[-1].tolist() == [7]


def test_a_loop_is_made_ready_for_each_kind_of_arguments() -> None:
    pytest.importorskip("numba")
    first, other = arguments(), arguments("u4")
    assert kernel("decode_fsst", first) is None
    wait_until_ready()
    assert kernel("decode_fsst", other) is None
    read_only = arguments()
    read_only[0].flags.writeable = False
    assert kernel("decode_fsst", read_only) is None
    wait_until_ready()
    assert kernel("decode_fsst", first) is kernel("decode_fsst", read_only) is not None
    assert len(compiled._state.dispatchers["decode_fsst"].signatures) == 3


def test_never_means_never() -> None:
    with forced(Mode.NEVER):
        assert not pays(1e9)
        assert kernel("decode_fsst", arguments()) is None
    assert not pays(0.0)


def _in_child(queue: object) -> None:
    queue.put((compiled._state.mode, kernel("decode_fsst", arguments())))


# Another test of this worker may have imported pylance, which warns of every fork.
@pytest.mark.filterwarnings("ignore:lance is not fork-safe:UserWarning")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_busy_process_stays_with_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(compiled, "_dispatcher", lambda *_: release.wait(60) and None)
    assert kernel("decode_fsst", arguments()) is None
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=240) == (Mode.NEVER, None)
    child.join()
    release.set()
    wait_until_ready()


def test_without_numba_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with forced(Mode.ALWAYS):
        assert kernel("unpack_bits", arguments()) is None
    assert kernel("unpack_bits", arguments()) is None
    wait_until_ready()
    assert kernel("unpack_bits", arguments()) is None


def test_without_a_folder_to_cache_in_it_is_compiled_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numba = pytest.importorskip("numba")
    plain = numba.njit

    asked = []

    def picky(*args, **options):
        asked.append(options.pop("cache", False))
        if asked[-1]:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", picky)
    with forced(Mode.ALWAYS):
        loop = kernel("decode_fsst", arguments())
    assert loop is not None
    assert asked == [True, False]
    out = np.zeros(1, np.uint64)
    loop(np.zeros(1, np.uint8), np.array([7], np.uint64), np.ones(1, np.uint8), out)
    assert out[0] == 7


def test_importing_the_codecs_does_not_import_numba_or_compute() -> None:
    code = (
        "import sys; import lance_nb.encodings.registry;"
        "print([m for m in ('numba', 'pyarrow.compute', 'lz4', 'zstandard') if m in sys.modules])"
    )
    root = Path(compiled.__file__).parents[3]
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, check=True, cwd=root)
    assert found.stdout.strip() == b"[]"


def test_one_thread_makes_all_loops_ready_and_a_dead_one_is_replaced() -> None:
    state = compiled._State()
    state.thread = busy = threading.current_thread()
    compiled._ask(state, ("add", 1), "add", ())
    assert state.thread is busy
    assert len(state.waiting) == 1
    state.thread = threading.Thread()  # was never started
    compiled._ask(state, ("add", 1), "add", ())  # asked for already
    assert not state.thread.is_alive()


def test_whether_numba_is_there_is_known_without_importing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        compiled.importlib.util, "find_spec", lambda name: (name == "numba") or None
    )
    assert compiled.is_available()
    monkeypatch.setattr(compiled.importlib.util, "find_spec", lambda _name: None)
    assert not compiled.is_available()


def test_tuples_and_numbers_of_other_kinds_are_other_arguments() -> None:
    words = np.zeros(3, np.uint64)
    alike = [((words, words), 1), ((words[:2], words), 7)]
    assert compiled._kind(alike[0]) == compiled._kind(alike[1])
    for other in (((words, words.astype(np.int64)), 1), ((words,), 1), ((words, words), 1.0),
                  ((words, words[::2]), 1), ((words, words.reshape(1, 3)), 1)):  # fmt: skip
        assert compiled._kind(other) != compiled._kind(alike[0])


@pytest.mark.parametrize("busy", [False, True])
def test_a_child_keeps_what_is_ready_unless_loops_are_being_made(busy: bool) -> None:
    state = compiled._state
    state.mode, state.missed_seconds = Mode.ALWAYS, 0.75
    state.ready["x",] = None
    state.thread = threading.current_thread() if busy else None
    compiled._give_up_after_fork()
    fresh = compiled._state
    assert fresh is not state
    assert fresh.thread is None
    assert fresh.mode is (Mode.NEVER if busy else Mode.ALWAYS)
    assert fresh.ready == ({} if busy else {("x",): None})
    assert fresh.missed_seconds == (0.0 if busy else 0.75)
    assert (fresh.dispatchers is state.dispatchers) is not busy
