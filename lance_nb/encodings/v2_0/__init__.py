"""The array encodings of file version 2.0: what its pages say instead of a page layout."""
