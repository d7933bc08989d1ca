"""Processes of ours and of pylance that write to one dataset at the same time."""
