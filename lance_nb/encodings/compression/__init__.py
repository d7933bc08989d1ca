"""One module per arm of ``CompressiveEncoding``; only ``encodings.registry`` imports them all."""
