"""The grades of judges: one file a judge, spreadsheets, and one grade of several."""
