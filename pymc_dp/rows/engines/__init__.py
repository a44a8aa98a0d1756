"""Rows in engines: databases and lazy frames that add up a table where it is."""
