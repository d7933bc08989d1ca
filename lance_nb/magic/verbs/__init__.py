"""The verbs of ``%lance`` and ``lance-nb``, one module per group."""
