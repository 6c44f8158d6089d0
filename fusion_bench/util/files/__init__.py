"""Files and folders: written whole or not at all, locked, named, checked before they are read."""
