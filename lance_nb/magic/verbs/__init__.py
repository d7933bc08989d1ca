"""The verbs, one file per group; ``magic.registry`` is the table of them all."""
