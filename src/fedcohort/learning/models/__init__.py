"""Models by name, one file each."""
