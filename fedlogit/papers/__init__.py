"""A paper as data: the grids of runs behind its tables and figures, at named scales.

`load_paper` reads ``workflow/papers/<paper>.yaml``; `expand` turns it, at a scale, into artefacts
(tables and figures), each with its fully resolved runs; `Plan` answers the questions a workflow
asks: which run lives at a path, which runs a table needs; `PlanWriter` writes the answers to files
for scripts. `docs/scales.md` and the head of `fedlogit.papers.layers` say which override wins.
"""

from fedlogit.papers.earlier_code import made_by_earlier_code
from fedlogit.papers.expansion import expand
from fedlogit.papers.loading import list_papers, load_paper, papers_in
from fedlogit.papers.plan import Plan
from fedlogit.papers.plan_writer import PlanWriter
from fedlogit.papers.planned import Cell, PlannedArtefact
from fedlogit.papers.schema import Paper
from fedlogit.runs.paths import run_dir, split_dir

__all__ = [
    "Cell",
    "Paper",
    "Plan",
    "PlanWriter",
    "PlannedArtefact",
    "expand",
    "list_papers",
    "load_paper",
    "made_by_earlier_code",
    "papers_in",
    "run_dir",
    "split_dir",
]
