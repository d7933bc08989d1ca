"""One module per arm of ``CompressiveEncoding``, decoding and encoding; see ``registry``."""
