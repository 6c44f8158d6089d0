"""What ``try`` compares: the usual systems on lists that no dataset describes."""
