"""What each rule of the workflow reads: a method per rule, from its wildcards to its files.

A partition, clients and a run that are there depend on nothing: neither a newer file nor a missing
data set makes a run start again that was trained here or pulled. Its folder's name is the hash of
all that it depends on. Logits and targets in between, which only runs that are missing ask for,
follow the clients and the data. Paths are texts, as rules write them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from fedlogit.errors import FedlogitError
from fedlogit.papers.plan import Plan
from fedlogit.papers.plan_writer import PlanWriter
from fedlogit.papers.planned import PlannedArtefact
from fedlogit.papers.published import check_published_files
from fedlogit.papers.run_checks import refuse_missing, refuse_unfit
from fedlogit.papers.schema import TEST_SCALE
from fedlogit.papers.selection import nothing_to_show
from fedlogit.runs import layout
from fedlogit.runs.paths import data_stems
from fedlogit.spec import RunSpec

__all__ = ["SUMMARY_PARTS", "RuleInputs"]

Files = dict[str, str | list[str]]
_OF_PARTITION = (layout.INDICES, "counts.csv", "distances.json", "bubbles.png")
_SUFFIXES = {"table": ("csv", "md", "tex"), "figure": ("png", "pdf", "md")}
# All outputs of a rule are asked for: Snakemake makes no file again that nobody asks for.
SUMMARY_PARTS = ("compare.csv", "compare.md", "orders.csv", "claims.csv", "claims.md",
                 "metrics.json", "numbers.json")  # fmt: skip
"""Files of a comparison, beside its summary."""
_OF_RECORD = ("csv", "md", "orders.csv", "counts.md", "papers.md", "png", "pdf")


class RuleInputs:
    """The inputs of the rules, for a plan.

    Args:
        plan: What is to be made; files of plans are written when a rule needs them.
        references: The folder of the papers' published numbers.
        forced: Whether it was asked to make any of these files again, by name or by their rule.

    Wrong published numbers are refused at once. All methods raise a `FedlogitError` for what the
    plan does not have, and for runs that are missing where they could not be trained.
    """

    def __init__(
        self, plan: Plan, references: str, forced: Callable[[list[str]], bool] = lambda _: False
    ) -> None:
        self._plan = plan
        self._writer = PlanWriter(plan)
        self._layout = plan.layout
        self._prepared = f"{plan.settings.data}/prepared"
        self._references = references
        self._forced = forced
        check_published_files(plan.papers.values(), Path(references))

    def download(self, dataset: str) -> list[str]:
        """Return nothing: a download needs no file, but a data set that there is."""
        from fedlogit.data import card

        card(dataset)
        return []

    def partition(self, split: str) -> Files:
        """Return what dividing the data needs: nothing where the partition is there."""
        spec = self._plan.spec_of_split(split)
        if self._has_outputs(self._layout.partition(split), _OF_PARTITION):
            return {}
        return {"spec": self._writer.split_file(split), "data": self._data_files(spec)}

    def validation(self, split: str) -> list[str]:
        """Return the option of `partition` for the samples that its runs validate on, if any do."""
        size = self._plan.known.validation.get(split)
        return ["--validation", str(size)] if size else []

    def train(self, run: str) -> Files:
        """Return what a run needs; in stages, its clients' logits and targets made of them."""
        spec = self._plan.spec_of_run(run)
        if self._has_outputs(self._layout.run(run), layout.OUTPUTS_OF_RUN):
            return {}
        refuse_unfit(self._plan, [run])
        found: Files = {"spec": self._writer.spec_file(run)}
        clients = self._plan.clients_of(run)
        if clients is None:
            return found | self._divided_data(run, spec)
        found["logits"] = str(self._layout.clients(clients) / layout.LOGITS_RECORD)
        if spec.server is not None:  # the method distils into the server's model
            found["targets"] = str(self._layout.targets(run))
        return found

    def train_clients(self, run: str) -> Files:
        """Return what the clients of one-shot runs need."""
        spec = self._plan.spec_of_clients(run)
        if self._has_outputs(self._layout.clients(run), layout.OUTPUTS_OF_CLIENTS):
            return {}
        return {"spec": self._writer.clients_file(run)} | self._divided_data(run, spec)

    def spec_file(self, run: str) -> str:
        """Return the file of a run's spec, which is written if it is not there."""
        return self._writer.spec_file(run)

    def export_logits(self, run: str) -> Files:
        """Return the record of the clients that predict, and the data that they predict on.

        They are clients of a one-shot run, or those of any run that exports its weights.
        """
        note, _, spec = self._plan.trained_weights(run)
        return {"note": note} | self._divided_data(run, spec)

    def aggregate(self, run: str) -> Files:
        """Return the logits of the clients that a run in stages rests on."""
        clients = self._plan.clients_of(run)
        if clients is None:
            raise FedlogitError(f"run {run} is not made in stages; it has no file of targets")
        return {"logits": str(self._layout.clients(clients) / layout.LOGITS)}

    def table(self, paper: str, scale: str, id: str) -> Files:
        """Return what a table is drawn from: its plan and the results of its runs."""
        return self._artefact_inputs("table", paper, scale, id)

    def figure(self, paper: str, scale: str, id: str) -> Files:
        """Return what a figure is drawn from: its plan and the results of its runs."""
        return self._artefact_inputs("figure", paper, scale, id)

    def _artefact_inputs(self, kind: str, paper: str, scale: str, id: str) -> Files:
        artefact = self._plan.artefact(paper, scale, id)
        if artefact.kind != kind:  # before its runs are trained for nothing
            place = self._layout.artefact(artefact.kind, paper, scale, id, "md")
            raise FedlogitError(f"{id} is no {kind} but a {artefact.kind}; ask for {place}")
        self._check_runs([artefact])
        return {
            "artefact": self._writer.artefact_file(artefact),
            "runs": self._result_files([artefact]),
        }

    def compare(self, paper: str, scale: str) -> Files:
        """Return what a summary is written from: the plans of what is judged, and their runs."""
        judged = self._plan.judged(paper, scale)
        if not judged:
            raise FedlogitError(
                f"{paper} has no table at scale {scale}, so there is no summary of it; ask for its"
                f" figures: snakemake --cores all --config scale={scale} -- {paper}"
            )
        self._check_runs(judged)
        plans = [self._writer.artefact_file(artefact) for artefact in judged]
        return {"artefacts": plans, "runs": self._result_files(judged)}

    def page(self, paper: str, scale: str) -> Files:
        """Return what the page of a paper shows; with `partial`, what finished runs cover.

        Where they cover nothing, as in a study that one method lacks, it shows all that is drawn.
        """
        artefacts = self._plan.drawable_of(paper, scale)
        if self._plan.settings.partial:
            covered = self._plan.covered()
            artefacts = [artefact for artefact in artefacts if artefact in covered] or artefacts
        if not artefacts:
            raise nothing_to_show(
                paper, scale, unfinished=bool(self._plan.planned_of(paper, scale))
            )
        tables = any(artefact.kind == "table" for artefact in artefacts)
        return {
            "artefacts": [self._writer.artefact_file(artefact) for artefact in artefacts],
            "drawn": self._drawing_files(artefacts),
            "summary": self._summary_files(paper, scale) if tables else [],
        }

    def reference(self, paper: str) -> list[str]:
        """Return the file of a paper's published numbers, in a list; a study may have none."""
        path = f"{self._references}/{paper}.csv"
        return [path] if Path(path).exists() else []

    def references(self) -> list[str]:
        """Return all published numbers, and the notes on them."""
        return sorted(path.as_posix() for path in Path(self._references).glob("*.*"))

    def drawn(self, artefacts: Iterable[PlannedArtefact]) -> list[str]:
        """Return the files of tables and figures, after a check that their runs can be had."""
        artefacts = list(artefacts)
        self._check_runs(artefacts)
        return self._drawing_files(artefacts)

    def papers(self, names: Iterable[str]) -> list[str]:
        """Return all that papers have at the configured scale: drawings, summary, page and runs.

        A run that is asked for by name is trained where it is missing, also if its tables exist.
        Where there is no table, or with `partial` no run of one, there is nothing to sum up.
        """
        names = list(names)
        artefacts = [a for a in self._plan.artefacts if a.paper.paper in names]
        scale = self._plan.settings.scale
        judged = {a.paper.paper for a in artefacts if a.kind == "table" or a.claims}
        summaries = [
            file for name in names if name in judged for file in self._summary_files(name, scale)
        ]
        return [
            *self.drawn(artefacts),
            *summaries,
            *self.pages(artefacts),
            *self._result_files(artefacts),
        ]

    def covered(self) -> list[str]:
        """Return the tables, figures, report and record, at any scale, that finished runs cover.

        Without `partial`, all their other runs would be trained, too; that is refused.
        """
        if not self._plan.settings.partial:
            raise FedlogitError(
                "covered draws what finished runs cover, so it needs partial = true: make figures,"
                " or snakemake --config frozen=true partial=true -- covered"
            )
        suffixes = _OF_RECORD if self.record() else ()
        record = [str(self._layout.root / f"record.{suffix}") for suffix in suffixes]
        return [*self.drawn(self._plan.covered()), *record, str(self._layout.root / "report.html")]

    def report(self) -> Files:
        """Return the pages of the configured scale; with `partial`, of all that runs cover.

        The report has those of other papers and scales, too, if they are there. If it shows the
        record, and that is to be drawn, that comes first.
        """
        partial = self._plan.settings.partial
        artefacts = self._plan.covered() if partial else self._plan.artefacts
        record = [str(self._layout.root / "record.png")] if partial and self.record() else []
        return {"pages": self.pages(artefacts), "record": record}

    def record(self) -> list[str]:
        """Return the summaries, at any scale, that the record of all numbers is made of.

        Those of other papers and scales are read, too, if they are there.
        """
        tables = (a for a in self._plan.covered() if a.kind == "table" and a.scale != TEST_SCALE)
        shown = dict.fromkeys((a.paper.paper, a.scale) for a in tables)
        return [
            file
            for paper, scale in shown
            if self.reference(paper)
            for file in self._summary_files(paper, scale)
        ]

    def pages(self, artefacts: Iterable[PlannedArtefact]) -> list[str]:
        """Return the pages, one per paper and scale, that show these tables and figures."""
        shown = dict.fromkeys((a.paper.paper, a.scale) for a in artefacts)
        return [str(self._layout.page(paper, scale)) for paper, scale in shown]

    def split_of(self, run: str) -> str:
        """Return the partition of the data of a run, or of a set of clients."""
        return str(self._layout.partition(self._plan.split_of(run)) / layout.INDICES)

    def _check_runs(self, artefacts: list[PlannedArtefact]) -> None:
        """Refuse what cannot be made of the runs that these need, before anything starts."""
        refuse_missing(self._plan, artefacts)
        refuse_unfit(self._plan, (run for a in artefacts for run in self._plan.runs(a)))

    def _has_outputs(self, folder: Path, outputs: Iterable[str]) -> bool:
        """Return whether all outputs of a rule are there and nobody asked to make them again.

        If one is missing, the rule runs for it, and needs its inputs; the others are made again.
        """
        paths = [folder / name for name in outputs]
        return all(path.exists() for path in paths) and not self._forced([str(p) for p in paths])

    def _result_files(self, artefacts: Iterable[PlannedArtefact]) -> list[str]:
        runs = dict.fromkeys(run for artefact in artefacts for run in self._plan.runs(artefact))
        return [str(self._layout.result(run)) for run in runs]

    def _summary_files(self, paper: str, scale: str) -> list[str]:
        folder = self._layout.summary(paper, scale)
        return [str(folder / name) for name in ("summary.md", *SUMMARY_PARTS)]

    def _drawing_files(self, artefacts: Iterable[PlannedArtefact]) -> list[str]:
        return [
            str(self._layout.artefact(a.kind, a.paper.paper, a.scale, a.id, suffix))
            for a in artefacts
            for suffix in _SUFFIXES[a.kind]
        ]

    def _divided_data(self, run: str, spec: RunSpec) -> Files:
        """Return a run's prepared data, that of foreign public samples, and the partition."""
        other = spec.public.dataset if spec.public else None
        data = self._data_files(spec) + (self._array_files(other) if other else [])
        return {"data": data, "split": self.split_of(run)}

    def _data_files(self, spec: RunSpec) -> list[str]:
        """Return the prepared files of a run's data set; a text has tokens, and their tokenizer."""
        return [path for stem in data_stems(spec) for path in self._array_files(stem)]

    def _array_files(self, stem: str) -> list[str]:
        """Return the arrays and the card; the card is small, and made last."""
        return [f"{self._prepared}/{stem}.{suffix}" for suffix in ("json", "npz")]
