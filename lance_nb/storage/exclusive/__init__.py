"""Exclusive creation of objects: one driver per kind of object store, found by ``registry``."""
