"""The tab of branches and tags, and the page of a merge."""
