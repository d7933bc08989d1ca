"""``dataclass`` for values that never change, made in a fraction of the time that Python's takes.

A value is a ``@dataclass(frozen=True, slots=True)`` of this module; everything else is an ordinary
class. ``fields``, ``replace``, ``asdict``, ``match``, ``inspect.signature``, copies and pickles
work as usual, and type checkers see the dataclass of Python.

``dataclasses.dataclass`` looks at every annotation and compiles six methods for every class, 0.6
ms: opening a dataset took a fifth longer. Here a class costs 0.04 ms. A method is written when it
is called first, and most classes of a process are never used; ``__init__`` in one piece, the others
by Python's own dataclass, which also says what the fields are.

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


class _Fields:
    """The fields of a class as they are written: names, annotations, defaults."""

    def __init__(self, cls: type, *, kw_only: bool) -> None:
        annotations = cls.__annotations__  # its own, not those of its bases
        self.kinds: dict[str, Any] = {}
        self.keywords: set[str] = set()  # those that are arguments by name only
        self._kw_only = kw_only
        for name, kind in annotations.items():
            if "KW_ONLY" in str(kind):
                kw_only = True
            elif not str(kind).startswith(("ClassVar", "typing.ClassVar")):
                self.kinds[name] = kind
                self.keywords |= {name} if kw_only else set()
        self.names = tuple(self.kinds)
        self.defaults = {name: cls.__dict__[name] for name in self.names if name in cls.__dict__}
        self._name = cls.__name__
        self._header = {"__module__": cls.__module__, "__annotations__": annotations, "__doc__": ""}
        self._twin: Any = None

    def of(self, name: str) -> dataclasses.Field[Any]:
        """Return what is written of a field: its default, and where it takes part."""
        default = self.defaults.get(name, dataclasses.MISSING)
        if not isinstance(default, dataclasses.Field):
            default = dataclasses.field(default=default)
        return cast("dataclasses.Field[Any]", default)

    def twin(self) -> Any:
        """Return the dataclass that Python makes of these fields, without methods."""
        if self._twin is None:
            self._twin = self.python_class(repr=False, eq=False)
        return self._twin

    def python_class(self, **options: bool) -> Any:
        """Let Python make a dataclass that has these fields and nothing else."""
        plain = type(self._name, (), self._header | self.defaults)
        return dataclasses.dataclass(init=False, kw_only=self._kw_only, **options)(plain)


def _value_class(
    plain: type, *, init: bool = True, repr: bool = True, eq: bool = True, kw_only: bool = False
) -> type:
    """Make the class anew with slots and the methods of a frozen dataclass."""
    fields = _Fields(plain, kw_only=kw_only)
    body = dict(plain.__dict__)
    own = set(body)
    if "__eq__" in own and body.get("__hash__") is None:
        own.discard("__hash__")  # Python puts None there beside __eq__
    for name in (*fields.names, "__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = fields.names
    body["__qualname__"] = plain.__qualname__
    body |= _EVERY_CLASS
    later: dict[str, Any] = dict.fromkeys(("__dataclass_fields__", "__match_args__"), _twins)
    if init:
        later["__init__"] = _written_init
        body["__signature__"] = _Signature(fields)
    if repr:
        later["__repr__"] = _written
    if eq:
        later |= {"__eq__": _written, "__hash__": _written}
    body |= {name: _Later(fields, make) for name, make in later.items() if name not in own}
    kind: Any = type(plain)
    rebuilt = kind(plain.__name__, plain.__bases__, body)
    for name, method in _frozen_methods(rebuilt, fields.names).items():
        if name not in own:
            setattr(rebuilt, name, method)
    return cast("type", rebuilt)


class _Later:
    """An attribute of a class that is made when it is first asked for, and then stands there."""

    def __init__(self, fields: _Fields, make: Callable[[Any, _Fields, str], Any]) -> None:
        self._fields = fields
        self._make = make

    def __set_name__(self, cls: type, name: str) -> None:
        self._class = cls
        self._name = name

    def __get__(self, value: Any, owner: Any) -> Any:
        setattr(self._class, self._name, self._make(self._class, self._fields, self._name))
        return getattr(owner if value is None else value, self._name)


def _twins(_cls: Any, fields: _Fields, name: str) -> Any:
    return getattr(fields.twin(), name)


# What Python gives every frozen dataclass.
_Value: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(type("_Value", (), {}))
_Value.__dataclass_params__.frozen = True
_EVERY_CLASS = {
    name: value
    for name, value in vars(_Value).items()
    if name in ("__dataclass_params__", "__replace__")
}


def _written_init(cls: Any, fields: _Fields, _name: str = "__init__") -> Callable[..., None]:
    """Write ``__init__`` for the fields of a class: one statement for each."""
    scope: dict[str, Any] = {"_unset": _UNSET}
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for name in fields.names:
        field = fields.of(name)
        value = parameter = name
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
            is_named = name in fields.keywords or field.kw_only is True
            (named if is_named else positional).append(parameter)
    if hasattr(cls, "__post_init__"):
        lines.append("    _self.__post_init__()")
    parameters = ["_self", *positional, *(["*", *named] if named else [])]
    head = f"def __init__({', '.join(parameters)}):\n"
    exec(head + ("\n".join(lines) or "    pass"), scope)  # noqa: S102  (names of fields only)
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {
        name: kind for name, kind in fields.kinds.items() if fields.of(name).init
    }
    return cast("Callable[..., None]", init)


class _Unset:
    """Stands for a default that is made anew for each value."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _written(cls: Any, fields: _Fields, name: str) -> Callable[..., Any]:
    """Let Python write a method."""
    twin = fields.python_class(
        frozen=name == "__hash__", repr=name == "__repr__", eq=name != "__repr__"
    )
    method: Callable[..., Any] = getattr(twin, name)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


class _Signature:
    """What ``inspect.signature`` finds on a class, made when it asks."""

    def __init__(self, fields: _Fields) -> None:
        self._fields = fields

    def __set_name__(self, cls: Any, _name: str) -> None:
        self._class = cls

    def __get__(self, value: Any, owner: Any) -> Any:
        """Return the signature of the class without ``self``; an object has none."""
        if value is not None:
            raise AttributeError("__signature__")
        import inspect

        is_inherited = owner.__init__ is not self._class.__init__
        init = owner.__init__ if is_inherited else _written_init(self._class, self._fields)
        signature = inspect.signature(init)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def _frozen_methods(cls: Any, names: tuple[str, ...]) -> dict[str, Any]:
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
