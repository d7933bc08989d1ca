"""The write verbs, one concept a file: what is planned, written, and committed again if need be."""
