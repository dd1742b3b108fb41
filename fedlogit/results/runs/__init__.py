"""Finished runs: one of them, those of a folder, those of a table or figure."""
