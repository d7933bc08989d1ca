"""Whole datasets that lie: each is refused in one clear sentence, soon and in little memory."""
