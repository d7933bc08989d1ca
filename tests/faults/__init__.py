"""Faults of every kind, made on purpose, for as long as one wants: ``python -m tests.faults``.

``verbs`` is the catalogue of changes that all kinds share. ``disk`` kills writers and lets calls of
the system fail, ``memory`` lets stores fail, ``processes`` lets writers race, ``on_spark`` does so
to jobs, ``damage`` changes files, ``lies`` holds datasets that contradict themselves, and
``differential`` runs random histories with both libraries.
"""
