"""The ``%lance`` magic and the ``lance-nb`` command: the same verbs in a notebook and a terminal.

A verb is one entry of ``registry.py``: its words, its help, and a function of the context (current
dataset, staged edits) and of the parsed arguments. ``shell.py`` connects the verbs to IPython,
``command_line.py`` to a terminal; neither contains code for a single verb.
"""
