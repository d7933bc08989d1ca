"""Encodings: page buffers to Arrow arrays and back, without I/O and without field ids."""
