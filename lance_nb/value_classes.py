"""``dataclass`` for values that never change, made in a fraction of the time that Python's takes.

A value is a ``@dataclass(frozen=True, slots=True)`` of this module; everything else is an ordinary
class. ``fields``, ``replace``, ``asdict``, ``match``, ``inspect.signature``, copies and pickles
work as usual, and type checkers see the dataclass of Python.

``dataclasses.dataclass`` writes and compiles six methods for every class, 0.6 ms: opening a dataset
took a fifth longer. Here a method is written when it is called first, and most classes of a process
are never used; ``__init__`` in one piece, the others by Python's own dataclass.

Limits: a class below a value class is left to Python's own at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414
else:

    def dataclass(*, frozen: bool, slots: bool, **options: bool) -> Any:
        """Make a dataclass; see ``dataclasses.dataclass`` for ``init``, ``repr`` and ``eq``."""

        def decorate(cls: type) -> type:
            if any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
                return dataclasses.dataclass(frozen=frozen, slots=slots, **options)(cls)
            return _value_class(cls, **options)

        return decorate


_Fields = tuple["dataclasses.Field[Any]", ...]
_Methods = dict[str, Any]


def _value_class(
    plain: type, *, init: bool = True, repr: bool = True, eq: bool = True, kw_only: bool = False
) -> type:
    """Make the class anew with slots and the methods of a frozen dataclass."""
    own = set(plain.__dict__)
    if "__eq__" in own and plain.__dict__.get("__hash__") is None:
        own.discard("__hash__")  # Python puts None there beside __eq__
    # Finds the fields, and writes no method.
    registered: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(
        plain
    )
    fields = dataclasses.fields(registered)
    names = tuple(field.name for field in fields)
    body = dict(registered.__dict__)
    for name in (*names, "__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = names
    kind: Any = type(registered)
    rebuilt = kind(registered.__name__, registered.__bases__, body)
    rebuilt.__qualname__ = registered.__qualname__
    rebuilt.__dataclass_params__.frozen = True
    methods = _frozen_methods(rebuilt, names)
    if init and "__init__" not in own:
        methods["__init__"] = _later(rebuilt, fields, "__init__")
        methods["__signature__"] = _Signature(rebuilt, fields)
    if repr:
        methods["__repr__"] = _later(rebuilt, fields, "__repr__")
    if eq:
        methods |= {name: _later(rebuilt, fields, name) for name in ("__eq__", "__hash__")}
    for name, method in methods.items():
        if name not in own:
            setattr(rebuilt, name, method)
    return cast("type", rebuilt)


def _later(cls: Any, fields: _Fields, name: str) -> Callable[..., Any]:
    """Stand in for a method until it is called, and have it written then."""

    def method(self: Any, *args: Any, **named: Any) -> Any:
        written = _written_init(cls, fields) if name == "__init__" else _written(cls, fields, name)
        setattr(cls, name, written)
        return written(self, *args, **named)

    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return method


def _written_init(cls: Any, fields: _Fields) -> Callable[..., None]:
    """Write ``__init__`` for the fields of a class: one statement for each."""
    scope: dict[str, Any] = {"_unset": _UNSET}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for field in fields:
        name = value = parameter = field.name
        scope[f"_set_{name}"] = cls.__dict__[name].__set__  # Slots let nobody else set them.
        if field.default is not dataclasses.MISSING:
            scope[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_unset"
            value = f"_make_{name}()"
            value = f"{value} if {name} is _unset else {name}" if field.init else value
        elif not field.init:
            continue
        lines.append(f"    _set_{name}(_self, {value})")
        if field.init:
            (named if field.kw_only else positional).append(parameter)
    if hasattr(cls, "__post_init__"):
        lines.append("    _self.__post_init__()")
    parameters = ["_self", *positional, *(["*", *named] if named else [])]
    head = f"def __init__({', '.join(parameters)}):\n"
    exec(head + ("\n".join(lines) or "    pass"), scope)  # noqa: S102  (names of fields only)
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields if field.init}
    return cast("Callable[..., None]", init)


class _Unset:
    """Stands for a default that is made anew for each value."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _written(cls: Any, fields: _Fields, name: str) -> Callable[..., Any]:
    """Let Python write a method, in a class that has these fields and nothing else."""
    twin = dataclasses.make_dataclass(
        cls.__name__,
        [(field.name, field.type, field) for field in fields],
        namespace={"__doc__": cls.__doc__},
        frozen=name == "__hash__",
        init=False,
        repr=name == "__repr__",
        eq=name != "__repr__",
    )
    method: Callable[..., Any] = getattr(twin, name)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


class _Signature:
    """What ``inspect.signature`` finds on a class, made when it asks."""

    def __init__(self, cls: Any, fields: _Fields) -> None:
        self._class = cls
        self._fields = fields

    def __get__(self, value: Any, owner: Any) -> Any:
        """Return the signature of the class without ``self``; an object has none."""
        if value is not None:
            raise AttributeError("__signature__")
        import inspect

        is_inherited = owner.__init__ is not self._class.__init__
        init = owner.__init__ if is_inherited else _written_init(self._class, self._fields)
        signature = inspect.signature(init)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def _frozen_methods(cls: Any, names: tuple[str, ...]) -> _Methods:
    # The same methods as those of a frozen dataclass with slots.

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__,
            "__getstate__": __getstate__, "__setstate__": __setstate__}  # fmt: skip
