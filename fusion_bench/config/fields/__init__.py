"""Fields that several models share: conditions on queries, servers, names of columns."""
