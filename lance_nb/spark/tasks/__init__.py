"""What tasks do: one file per kind of edit."""
