"""The notebook interface: view models, widgets over them, static pictures beside them."""

from lance_nb.explorer.app import Explorer, explore

__all__ = ["Explorer", "explore"]
