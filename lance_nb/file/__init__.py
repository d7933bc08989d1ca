"""One .lance data file: its container, its pages, and its columns as Arrow arrays."""
