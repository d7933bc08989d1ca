"""The editor of rows, which opens in the grid of rows."""
