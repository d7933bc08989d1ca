"""External manifest stores, one file each; ``registry`` one folder up finds them."""
