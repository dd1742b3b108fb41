"""The record of all published numbers: rows, notes, files, a picture."""
