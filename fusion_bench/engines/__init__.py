"""Search engines and libraries that fuse: one file each, found by name."""
