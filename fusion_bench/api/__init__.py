"""The functions behind the public Python names: the commands, on data that is at hand."""
