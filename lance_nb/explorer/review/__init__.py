"""Reviews of a branch: the page in the explorer and the page as a file."""
