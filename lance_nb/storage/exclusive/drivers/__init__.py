"""How each kind of object store creates exclusively, one file each."""
