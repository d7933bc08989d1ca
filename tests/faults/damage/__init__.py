"""Damaged bytes: whatever a file says, reading it ends soon, with data or with a LanceError."""
