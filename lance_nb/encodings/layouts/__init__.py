"""One module per arm of PageLayout; each opens a page and decodes wanted rows."""
