"""The tables of a page as files of their own, for a paper or a spreadsheet."""
