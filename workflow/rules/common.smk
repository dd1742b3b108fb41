"""Between the rules and `fedlogit.papers.Plan`, which does the thinking."""

import logging
import signal
import threading

from snakemake.logging import LogEvent
from snakemake.logging import logger as snakemakes

# Rules run the Python that runs Snakemake, and find the library, also if neither is activated.
os.environ |= {
    "PATH": os.pathsep.join([os.path.dirname(sys.executable), *os.get_exec_path()]),
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])]
    ),
}


# Slurm sends SIGUSR1 (sbatch --signal) to all processes of a job. Training saves itself on it; what
# runs in between must not die of it, and ignoring a signal is inherited.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def growing(amount):
    """Return a resource that grows with the attempt: a job that was killed for it gets more."""
    return lambda wildcards, attempt: amount * attempt


def here(path):
    """Return the path of a file of the project, whatever folder results are written to."""
    return os.path.relpath(ROOT / path)


def checked(function, *args):
    """Call a function; a user's mistake becomes one line instead of a traceback."""
    try:
        return function(*args)
    except FedlogitError as error:
        raise WorkflowError(str(error)) from None


def say(line):
    """Tell the user a line, once: jobs read these files, too."""
    if line and workflow.is_main_process:
        print(line, file=sys.stderr)


class Brief(logging.Filter):
    """Snakemake's messages in short: a line per finished job that says which one, and all errors.

    The paragraph about each job, which makes megabytes of a large plan, is left to `-p`.
    """

    def __init__(self):
        super().__init__()
        self.jobs = {}

    def filter(self, record):
        event = getattr(record, "event", None)
        if event is LogEvent.JOB_INFO:
            self.jobs[record.jobid] = " ".join(
                [record.rule_name, *record.wildcards.values()]
            )
        elif event is LogEvent.JOB_FINISHED and record.job_id in self.jobs:
            record.msg = f"Finished {self.jobs[record.job_id]}"
        long = (LogEvent.JOB_INFO, LogEvent.GROUP_INFO, LogEvent.SHELLCMD)
        return event not in long or workflow.output_settings.printshellcmds


def be_brief():
    """Shorten Snakemake's messages; once, also where these files are read again in one process."""
    for old in [f for f in snakemakes.filters if type(f).__name__ == Brief.__name__]:
        snakemakes.removeFilter(old)
    snakemakes.addFilter(Brief())


def files_of(artefacts):
    """Return the files of tables and figures."""
    return [
        f"results/{a.kind}s/{a.paper.paper}/{a.scale}/{a.id}.{suffix}"
        for a in artefacts
        for suffix in (("csv", "md", "tex") if a.kind == "table" else ("png", "pdf"))
    ]


def allowed(artefacts):
    """Refuse what cannot be made of the runs that these need, before anything starts."""
    checked(PLAN.refuse_missing, artefacts)
    checked(PLAN.refuse_unfit, [run for a in artefacts for run in PLAN.runs(a)])


def gpus(spec_of):
    """Return a resource: whether the run that a path names takes a GPU, where there is one."""
    return lambda wildcards: int(PLAN.on_gpu(checked(spec_of, wildcards.run)))


def drawn(artefacts):
    """Return a function to the files of tables and figures, which asks for their runs first."""

    def files(wildcards):
        allowed(artefacts)
        return files_of(artefacts)

    return files


def pages(artefacts):
    """Return the pages, one per paper and scale, that show these tables and figures."""
    shown = dict.fromkeys((a.paper.paper, a.scale) for a in artefacts)
    return [f"results/report/{paper}/{scale}.html" for paper, scale in shown]


def page_input(wildcards):
    """Return what the page of a paper at a scale shows; with `partial`, what runs cover."""
    artefacts = checked(PLAN.of, wildcards.paper, wildcards.scale)
    if SETTINGS.partial:
        covered = PLAN.covered()
        artefacts = [a for a in artefacts if a in covered]
    tables = any(a.kind == "table" for a in artefacts)
    return {
        "artefacts": [PLAN.artefact_file(a) for a in artefacts],
        "drawn": files_of(artefacts),
        "summary": (
            [f"results/summary/{wildcards.paper}/{wildcards.scale}/summary.md"]
            if tables
            else []
        ),
    }


def summaries(papers):
    """Return the comparison of each paper with ours, and the runs it rests on.

    A run that is asked for by name is trained where it is missing, also if its tables still exist.
    """

    def files(wildcards):
        artefacts = [a for a in PLAN.artefacts if a.paper.paper in papers]
        runs = dict.fromkeys(r for a in artefacts for r in PLAN.runs(a))
        allowed(artefacts)
        made = [
            f"results/summary/{paper}/{SETTINGS.scale}/summary.md" for paper in papers
        ]
        made += pages(artefacts)
        return made + [f"results/runs/{run}/result.json" for run in runs]

    return files


def told_covered(wildcards):
    """Return what was drawn, and where, in one line."""
    artefacts = PLAN.covered()
    kinds = [artefact.kind for artefact in artefacts]
    return (
        f"{kinds.count('table')} tables and {kinds.count('figure')} figures are in results/tables"
        f" and results/figures; each paper on one page: {' '.join(pages(artefacts))}"
    )


def covered(wildcards):
    """Return the tables, figures and pages, at any scale, that finished runs cover."""
    artefacts = PLAN.covered()
    return drawn(artefacts)(wildcards) + pages(artefacts)


def artefact_input(wildcards):
    """Return an artefact's file and the results of its runs."""
    artefact = checked(PLAN.artefact, wildcards.paper, wildcards.scale, wildcards.id)
    allowed([artefact])
    return {
        "artefact": PLAN.artefact_file(artefact),
        "runs": [f"results/runs/{run}/result.json" for run in PLAN.runs(artefact)],
    }


def summary_input(wildcards):
    """Return what `compare` reads: the plans of what is judged, and the results of its runs."""
    tables = checked(PLAN.judged, wildcards.paper, wildcards.scale)
    allowed(tables)
    runs = dict.fromkeys(run for a in tables for run in PLAN.runs(a))
    return {
        "artefacts": [PLAN.artefact_file(a) for a in tables],
        "runs": [f"results/runs/{run}/result.json" for run in runs],
    }


def published(wildcards):
    """Return the file of a paper's published numbers, in a list; a study may have none."""
    file = here(f"workflow/reference/{wildcards.paper}.csv")
    return [file] if os.path.exists(file) else []


def published_option(wildcards, input):
    """Return the option of scripts that names the published numbers, where there are any."""
    return [part for file in input.reference for part in ("--reference", file)]


def told(file):
    """Return the caption that a file ends with, or "" while there is none; for the report."""
    lines = Path(file).read_text().splitlines() if os.path.exists(file) else []
    return lines[-1] if lines else ""


def made(path, rule):
    """Return whether a file exists and nobody asked to make it again."""
    forced = workflow.dag_settings.forceall or rule in workflow.dag_settings.forcerun
    return os.path.exists(path) and not forced


def train_input(wildcards):
    """Ask for spec, data and division only where the run is missing; in stages, for the answers.

    A finished run, trained here or pulled, then depends on nothing: neither a newer file nor
    a missing dataset makes it start again. Its folder's name is the hash of all that it depends on.
    """
    run = wildcards.run
    spec = checked(PLAN.run, run)
    if made(f"results/runs/{run}/result.json", "train"):
        return {}
    checked(PLAN.refuse_unfit, [run])
    if clients := PLAN.clients_of(run):
        found = {"logits": f"results/clients/{clients}/logits.json"}
        if spec.server is not None:  # the method teaches a model of the server
            found["targets"] = f"results/targets/{run}/targets.npz"
    else:
        found = {"data": needed(spec), "split": split_file(wildcards)}
    return {"spec": PLAN.spec_file(run)} | found


def train_options(wildcards, input):
    """Return how often a run is saved and, of a run in stages, what earlier ones left."""
    options = ["--checkpoint-seconds", SETTINGS.checkpoint_seconds]
    if "logits" in input.keys():
        clients = os.path.dirname(input.logits)
        options += ["--clients", clients, "--logits", f"{clients}/logits.npz"]
    if "targets" in input.keys():
        options += ["--targets", input.targets]
    return options


def aggregate_input(wildcards):
    """Return the logits of the clients that a run in stages rests on."""
    run = wildcards.run
    if not (clients := checked(PLAN.clients_of, run)):
        raise WorkflowError(
            f"run {run} is not made in stages; it has no file of targets"
        )
    return f"results/clients/{clients}/logits.npz"


def split_file(wildcards):
    """Return the division of the data of a run."""
    return divided(checked(PLAN.run, wildcards.run))


def divided(spec):
    """Return the division of the data that a spec implies."""
    return f"results/partitions/{split_dir(spec)}/indices.npz"


def clients_input(wildcards):
    """Ask for spec, data and division only where the clients are missing, as for a run."""
    spec = checked(PLAN.clients, wildcards.run)
    if made(f"results/clients/{wildcards.run}/clients.json", "train_clients"):
        return {}
    return {
        "spec": PLAN.clients_file(wildcards.run),
        "data": needed(spec),
        "split": divided(spec),
    }


def clients_split(wildcards):
    """Return the division of the data of a set of clients."""
    return divided(checked(PLAN.clients, wildcards.run))


def answering(wildcards):
    """Return the record and the weights of clients that answer, and the division of their data.

    They are clients of a one-shot run, or those of any finished run that exported its weights.
    """
    note, _, spec = checked(PLAN.answering, wildcards.run)
    return {"note": note, "data": needed(spec), "split": divided(spec)}


def their_weights(wildcards):
    """Return where the weights of the clients that answer are."""
    _, weights, _ = checked(PLAN.answering, wildcards.run)
    return weights


def prepared(spec):
    """Return the prepared files of a run's dataset; the card is small, and made last.

    A text has tokens beside it, and the tokenizer that made them.
    """
    stems = [spec.dataset]
    if spec.text:
        stems.append(f"{spec.dataset}.bpe{spec.text.vocabulary}")
    return pairs_of(stems)


def pairs_of(stems):
    """Return the two files of each stem in the folder of prepared data."""
    return [
        f"{DATA}/prepared/{s}.{suffix}" for s in stems for suffix in ("json", "npz")
    ]


def needed(spec):
    """Return the prepared files of a run's datasets: its own, and that of foreign public samples."""
    other = spec.public.dataset if spec.public else None
    return prepared(spec) + pairs_of([other] if other else [])


def partition_input(wildcards):
    """Ask for the data only where the division is missing, so that a pulled one stays."""
    spec = checked(PLAN.split, wildcards.split)
    if made(f"results/partitions/{wildcards.split}/indices.npz", "partition"):
        return {}
    return {"spec": PLAN.split_file(wildcards.split), "data": prepared(spec)}
