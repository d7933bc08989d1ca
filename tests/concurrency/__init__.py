"""Writers that meet, fail and crash: the commit protocol under a seed, and as real processes."""
