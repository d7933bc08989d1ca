"""Exclusive creation per kind of object store: one file each, found by ``registry``."""
