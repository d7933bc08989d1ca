"""One version of a dataset, read side: versions, refs, fragments, scans, takes, inspection."""
