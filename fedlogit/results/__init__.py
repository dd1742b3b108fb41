"""Reads finished runs; makes tables, figures and verdicts, and never trains anything."""
