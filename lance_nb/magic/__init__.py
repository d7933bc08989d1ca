"""The ``%lance`` magic and the ``lance-nb`` command: the same verbs, by two doors.

A verb is one entry of ``registry``: its words, its help, and a function of the desk (the dataset in
hand, the edits staged on it) and its arguments. ``shell`` is the door of IPython, ``command_line``
the door of a terminal; neither knows a verb by name.
"""
