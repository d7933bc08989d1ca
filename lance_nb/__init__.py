"""lance_nb: explore, version and change Lance datasets in Jupyter, on an engine in Python.

``lance_nb.dataset(uri)`` opens a dataset; ``lance_nb.explore(uri)`` opens it as a widget;
``%load_ext lance_nb`` adds the ``%lance`` magic. Names follow pylance where the concept is the
same.
"""

import typing as _typing
from importlib import import_module as _import_module

import lazy_loader as _lazy_loader

from lance_nb.dataset import dataset as dataset
from lance_nb.dataset import display as _display

# The names are listed in the stub beside this file.
_load, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> _typing.Any:
    try:
        return _load(name)
    except AttributeError:
        if name in __all__ or name.startswith("_"):
            raise
        near = _import_module("difflib").get_close_matches(name, __all__, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"lance_nb has no name {name!r}{meant}", name=name) from None


def _render(value: object) -> dict[str, _typing.Any] | None:
    """Show a value of the façade as the explorer does; loaded when a notebook first shows one."""
    try:
        module = _import_module("lance_nb.explorer.display")
    except ImportError:
        return None  # the notebook packages are not installed: the notebook shows the repr
    bundle: dict[str, _typing.Any] = module.mime_bundle(value)
    return bundle


def _render_review(review: object, whole: bool) -> str:
    """Render the page of a review; loaded when one is asked for."""
    module = _import_module("lance_nb.explorer.review.review_page")
    page: str = module.review_page(review) if whole else module.review_picture(review)
    return page


_display.set_renderer(_render)
_display.set_page_renderer(_render_review)


def _load_magic_if_wanted() -> None:
    """Add ``%lance`` while lance_nb is imported, where IPython is configured so.

    In ipython_config.py: ``c.LanceMagics.autoload = True``.
    """
    shell = _display.ipython_shell()
    if shell is not None and shell.config.get("LanceMagics", {}).get("autoload"):
        shell.extension_manager.load_extension("lance_nb")


def _show_values() -> None:
    """Give values that cannot import the explorer their display, where there is a notebook.

    Nothing is loaded: IPython calls ``_render`` when a cell ends with such a value.
    """
    shell = _display.ipython_shell()
    if shell is None:
        return
    formatter = shell.display_formatter.mimebundle_formatter
    for module, name in _display.VALUES:
        formatter.for_type_by_name(module, name, lambda value, **_options: _render(value))


_load_magic_if_wanted()
_show_values()
