"""The commands that follow a command, as text to be copied."""
