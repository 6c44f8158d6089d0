"""What commands print: lines, JSON, tables."""
