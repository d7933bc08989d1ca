"""One module per arm that can be written; ``encodings.choose`` knows them all."""
