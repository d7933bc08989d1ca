"""Above the tabs: overview, timeline and details of a version; its schema."""
