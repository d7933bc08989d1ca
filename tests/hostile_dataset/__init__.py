"""Whole datasets that lie: each must be refused in one clear sentence, quickly and in little memory."""
