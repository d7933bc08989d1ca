"""Text indices (INVERTED): cut texts into words, search them, and build the files.

``search`` finds the rows of a full-text query, ``partition`` opens the files of a segment, with the
words in a finite-state map (``fst``) and their documents in posting lists (``postings``).
``tokenizer`` cuts texts as the parameters of an index say.
"""
