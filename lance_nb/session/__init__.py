"""An open dataset: its location and stores, its caches, and the version that a reference means."""
