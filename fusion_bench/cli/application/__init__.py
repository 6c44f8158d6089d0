"""The application: it finds the commands' files, checks numbers and ends with an exit code."""
