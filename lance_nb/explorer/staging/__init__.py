"""Changes that wait to be committed: cards on a deck that the explorer and ``%lance`` share."""
