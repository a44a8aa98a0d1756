"""Rows that are not in a model: what is public about them, and their values, in blocks."""
