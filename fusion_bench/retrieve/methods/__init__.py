"""Ways to retrieve, one file each: texts in, one ranked list a query out."""
