"""Value classes behave as frozen dataclasses with slots do; Python's own is the judge."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import field
from typing import Any, Generic, TypeVar

import pytest

from lance_nb import value_classes
from lance_nb.value_classes import dataclass

T = TypeVar("T")
MAKERS = {"ours": dataclass, "python": dataclasses.dataclass}


def classes(dataclass: Any) -> dict[str, Any]:
    """Make the same classes by either decorator."""

    @dataclass(frozen=True, slots=True)
    class Plain:
        """A value."""

        a: int
        b: str = "x"
        c: list[int] = field(default_factory=list)
        d: float = field(default=0.5, kw_only=True)
        e: int = field(default=7, compare=False, repr=False)
        f: int = field(default=9, init=False)

        @property
        def twice(self) -> int:
            """Compute something."""
            return self.a * 2

    @dataclass(frozen=True, slots=True)
    class Checked:
        """A value that is checked."""

        a: int
        known: list[int] = field(default_factory=list, hash=False)

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")
            object.__setattr__(self, "a", self.a + 1)

    @dataclass(frozen=True, slots=True, eq=False)
    class Same:
        """A value that is equal to itself only."""

        a: int

    @dataclass(frozen=True, slots=True, repr=False)
    class Shown:
        """A value with a text, an equality and a hash of its own."""

        a: int

        def __repr__(self) -> str:
            return "shown"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Shown)

        def __hash__(self) -> int:
            return 5

    @dataclass(frozen=True, slots=True)
    class HalfOwn:  # noqa: PLW1641
        """A value with an equality of its own, but no hash."""

        a: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, HalfOwn)

    @dataclass(frozen=True, slots=True, init=False)
    class OwnInit:
        """A value with an initializer of its own."""

        a: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "a", int(text))

    @dataclass(frozen=True, slots=True)
    class Empty:
        """A value without fields."""

    @dataclass(frozen=True, slots=True)
    class Held(Generic[T]):
        """A value of any type."""

        a: T

    class Child(Plain):
        """A class below that adds nothing."""

    @dataclass(frozen=True, slots=True)
    class Grown(Plain):
        """A dataclass below that adds a field."""

        g: int = 0

    return {
        one.__name__: one
        for one in (
            Plain,
            Checked,
            Same,
            Shown,
            HalfOwn,
            OwnInit,
            Empty,
            Held,
            Child,
            Grown,
        )
    }


OURS, PYTHON = (classes(maker) for maker in MAKERS.values())
MADE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Plain", (1,), {}), ("Plain", (1, "y", [2]), {"d": 2.5, "e": 3}),
    ("Plain", (), {"a": 4, "b": "z"}), ("Checked", (1,), {}), ("Checked", (3,), {"known": [1]}),
    ("Same", (1,), {}), ("Shown", (1,), {}), ("HalfOwn", (1,), {}), ("OwnInit", ("7",), {}),
    ("Empty", (), {}),
    ("Held", ("v",), {}), ("Child", (1, "q"), {}), ("Grown", (1,), {"g": 3}),
    ("Held", (float("nan"),), {}),
]  # fmt: skip


def outcome(act: Any) -> Any:
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error).__mro__[-4:], str(error).replace("method.", "").split(".")[-1]


@pytest.mark.parametrize(("name", "args", "named"), MADE)
def test_values_are_made_shown_compared_and_hashed_as_by_python(name, args, named) -> None:
    ours, python = (made[name](*args, **named) for made in (OURS, PYTHON))
    other = {made is OURS: made[name](*args, **named) for made in (OURS, PYTHON)}
    if name != "Same":
        assert repr(ours) == repr(python)
        assert outcome(lambda: hash(ours)) == outcome(lambda: hash(python))
    assert (ours == other[True]) == (python == other[False])
    assert (ours == 5) == (python == 5)
    assert ours.__eq__(5) == python.__eq__(5)
    assert dataclasses.is_dataclass(ours)
    assert dataclasses.asdict(ours).keys() == dataclasses.asdict(python).keys()
    assert [str(one) for one in dataclasses.fields(ours)] == [
        str(one) for one in dataclasses.fields(python)
    ]
    assert type(ours).__match_args__ == type(python).__match_args__
    assert type(ours).__slots__ == type(python).__slots__ if name != "Child" else True
    assert repr(copy.copy(ours)) == repr(copy.deepcopy(ours)) == repr(ours)


@pytest.mark.parametrize("name", [name for name in OURS if name != "Child"])
def test_signatures_and_params_are_those_of_python(name: str) -> None:
    ours, python = OURS[name], PYTHON[name]
    shown = [str(inspect.signature(one)).replace(" -> None", "") for one in (ours, python)]
    assert shown[0] == shown[1]
    assert ours.__dataclass_params__.frozen == python.__dataclass_params__.frozen is True
    assert ours.__doc__ == python.__doc__
    assert ours.__qualname__ == python.__qualname__
    assert ours.__module__ == python.__module__
    assert ours.__init__.__qualname__ == python.__init__.__qualname__


def test_the_signature_of_a_class_below_is_that_of_its_base() -> None:
    shown = [
        str(inspect.signature(one)).replace(" -> None", "")
        for one in (OURS["Child"], PYTHON["Child"])
    ]
    assert shown[0] == shown[1]
    with pytest.raises(TypeError):
        inspect.signature(OURS["Plain"](1))


@pytest.mark.parametrize("args", [(), (1, 2, 3, 4, 5, 6, 7), ("a",) * 9])
def test_wrong_arguments_are_refused(args: tuple[Any, ...]) -> None:
    for made in (OURS, PYTHON):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            made["Plain"](*args)
        with pytest.raises(TypeError, match="unexpected keyword argument 'zz'"):
            made["Plain"](1, zz=1)
        with pytest.raises(ValueError, match="negative"):
            made["Checked"](-1)


@pytest.mark.parametrize("name", ["Plain", "Child", "Grown", "Checked"])
def test_values_cannot_be_changed(name: str) -> None:
    for made in (OURS, PYTHON):
        value = made[name](1)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
            value.a = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
            del value.a
        if name == "Child":  # has room for more, as any class without slots
            if made is OURS:  # Python's own raises a TypeError in some releases
                value.more = 1
                del value.more
        else:
            with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
                value.more = 1


def test_replace_keeps_the_rest_and_checks_again() -> None:
    for made in (OURS, PYTHON):
        value = dataclasses.replace(made["Plain"](1, "y", d=2.0), a=5)
        assert (value.a, value.b, value.d, value.f) == (5, "y", 2.0, 9)
        with pytest.raises(ValueError, match="negative"):
            dataclasses.replace(made["Checked"](1), a=-5)


def test_defaults_are_made_anew() -> None:
    one, other = OURS["Plain"](1), OURS["Plain"](1)
    assert one.c == other.c
    assert one.c is not other.c


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that can be pickled by its name."""

    a: int
    b: tuple[int, ...] = ()


def test_values_are_pickled() -> None:
    value = Stored(1, (2, 3))
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301


def test_a_pattern_takes_a_value_apart() -> None:
    match Stored(1, (2,)):
        case Stored(a, b):
            assert (a, b) == (1, (2,))


@pytest.mark.parametrize(
    "options",
    [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True, "order": True}],
)
def test_other_kinds_of_dataclasses_are_refused(options: dict[str, bool]) -> None:
    with pytest.raises(TypeError):

        @dataclass(**options)
        class Open:
            """Not a value."""

            a: int


def test_fields_may_be_given_by_name_only() -> None:
    for maker in MAKERS.values():

        @maker(frozen=True, slots=True, kw_only=True)
        class Named:
            """A value whose fields are named."""

            a: int
            b: int = 2

        assert Named(a=1) == Named(b=2, a=1)
        with pytest.raises(TypeError):
            Named(1)


def test_methods_are_written_once_and_when_they_are_called(monkeypatch) -> None:
    written = []
    original = value_classes._written_init

    def noted(cls: Any, *fields: Any) -> Any:
        written.append(cls)
        return original(cls, *fields)

    monkeypatch.setattr(value_classes, "_written_init", noted)
    made = classes(dataclass)["Plain"]
    assert written == []
    made(1)
    made(2)
    assert written == [made]


def test_only_names_of_fields_become_code(monkeypatch) -> None:
    """Texts that a value or a default holds are arguments of the method, never a part of it."""
    texts = []
    real = exec

    def noted(text: str, scope: dict[str, Any]) -> None:
        texts.append(text)
        real(text, scope)

    monkeypatch.setattr(value_classes, "exec", noted, raising=False)
    hostile = "'); raise SystemExit(1) #"

    @dataclass(frozen=True, slots=True)
    class Value:
        """A value."""

        a: str
        b: str = hostile

    assert Value(hostile).b == Value(hostile).a == hostile
    lines = ["    _set_a(_self, a)", "    _set_b(_self, b)"]
    assert texts == ["def __init__(_self, a, b=_default_b):\n" + "\n".join(lines)]


def test_importing_the_package_writes_no_method() -> None:
    code = (
        "import lance_nb.value_classes as v\n"
        "v._written_init = v._written = lambda *a: 1 / 0\n"
        "import lance_nb.table.scan, lance_nb.format.manifest\n"
        "print('imported')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "imported\n", done.stderr[-2000:]
