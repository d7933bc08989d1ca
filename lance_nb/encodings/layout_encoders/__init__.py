"""One module per page layout that can be written; ``encodings.choose`` knows them all."""
