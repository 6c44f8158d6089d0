"""How processes of the command line start, are interrupted, and end."""
