"""Parts of a command that have a file of their own: ``dataset add``, ``queries vote``."""
