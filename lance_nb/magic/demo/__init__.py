"""The demo dataset: a catalogue of street photographs with a history worth looking at."""
