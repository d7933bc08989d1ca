"""Random sequences of every verb, by us and by pylance in turns, against a model of the rows."""
