"""One module per arm of ``PageLayout``, reading and writing pages; see ``registry``."""
