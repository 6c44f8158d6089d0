"""Studies that write the tables of docs/, and what they share."""
