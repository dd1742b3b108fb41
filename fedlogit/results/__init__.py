"""Reads finished runs; makes tables, figures and verdicts, and never trains anything.

Each part uses those above it alone:

- `runs` reads finished runs, `metrics` takes numbers of them, `collect` makes frames of both.
- `statistics` has intervals, tests and ranks over such frames.
- `tables` and `analyses` make tables, `figures` pictures: of either, a file for each kind.
- `verdicts` compares a paper's numbers with ours and tests its claims; `summary` writes it down.
- `record` puts the comparisons of all papers and scales together, a row per published number.
- `pages` makes the report and pages of docs of what these have written.
- `redraw` makes tables, figures, summaries and the record again, and compares.
"""
