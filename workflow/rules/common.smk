"""Functions that the rules share, and what becomes of errors and messages."""

import signal
import threading

from fedlogit.config import read_settings
from fedlogit.papers import list_papers
from fedlogit.runs import layout
from fedlogit.runs.paths import stage_options
from fedlogit.workflow import SUMMARY_PARTS, error_in, failure, shorten_messages
from snakemake.io import strip_wildcard_constraints
from snakemake.jobs import Job
from snakemake.logging import logger as snakemake_logger
from snakemake.resources import Resources

# Rules run the Python that runs Snakemake, and find the library, also if neither is activated.
os.environ |= {
    "PATH": os.pathsep.join([os.path.dirname(sys.executable), *os.get_exec_path()]),
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])]
    ),
}


def targets():
    """Return what may be asked for: rules without wildcards, and the patterns of files."""
    names = [rule.name for rule in workflow.rules if not rule.has_wildcards()]
    files = [file for rule in workflow.rules for file in rule.output]
    return names + [strip_wildcard_constraints(file) for file in files]


def other_papers():
    """Return the papers that have a file, but are not among those of the settings."""
    return set(list_papers(ROOT / "workflow/papers")) - set(SETTINGS.papers)


def restarts(job):
    """Return how often a job may be tried again: not after an error that would come again.

    Snakemake has no exit code here, so the log says it. A download may succeed the next time.
    """
    hopeless = job.rule.name != "download" and error_in(job.log)
    return 0 if hopeless else job.rule.restart_times


# As a module, messages and jobs are not ours to change.
if workflow.modifier.parent_modifier is None:
    _printed = workflow.output_settings.printshellcmds
    shorten_messages(snakemake_logger, _printed, targets, other_papers)
    Job.restart_times = property(restarts)


onerror:
    # A line for each failed job; its error in full is far above, between other messages.
    for _failed in workflow.scheduler.failed:
        for _job in getattr(_failed, "jobs", [_failed]):
            if not _job.output or not all(map(os.path.exists, _job.output)):
                _made = _job.output or [_job.rule.name]
                print(failure(_made, _job.log), file=sys.stderr)


# Slurm sends SIGUSR1 (sbatch --signal) to all processes of a job. Training saves itself on it; what
# runs in between must not die of it, and ignoring a signal is inherited.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def per_attempt(amount):
    """Return a resource that grows with the attempt: a job that was killed for it gets more."""
    return lambda wildcards, attempt: amount * attempt


def project_path(path):
    """Return the path of a file of the project, whatever folder results are written to."""
    return os.path.relpath(ROOT / path)


class UserMistake(WorkflowError):
    """A user's mistake; `shorten_messages` leaves nothing but its line."""


def checked(function, *args, **kwargs):
    """Call a function; a user's mistake becomes one line instead of a traceback."""
    try:
        return function(*args, **kwargs)
    except FedlogitError as error:
        raise UserMistake(str(error)) from None


# Of a key given twice Snakemake takes the last, of what is no YAML it names no line, and an empty
# file it refuses.
if os.path.lexists("config.yaml") and checked(read_settings, Path("config.yaml")):

    configfile: "config.yaml"


def settings(config):
    """Return the settings; the error of a mistake names the file or option that has it."""
    if workflow.modifier.parent_modifier is None:
        given = workflow.config_settings
        for file in given.configfiles:
            where = os.path.relpath(file)
            checked(Settings.load, checked(read_settings, Path(where)), where)
        checked(Settings.load, given.config, "--config")
        return checked(Settings.load, config, "config.yaml")
    # The workflow that imports this one may have taken them from any file.
    return checked(Settings.load, config, "config of the module")


def print_once(line):
    """Print a line, but not in jobs, which read these files, too."""
    if line and workflow.is_main_process:
        print(line, file=sys.stderr)


def trains_alone():
    """Return whether runs train one after another on a terminal, where each may show a bar."""
    cores = workflow.resource_settings.cores
    return sys.stderr.isatty() and cores is not None and cores <= SETTINGS.workers


def of_wildcards(method):
    """Return an input function that calls a method with the wildcards as keyword arguments."""
    return lambda wildcards: checked(method, **dict(wildcards.items()))


def is_forced(files):
    """Return whether options, such as ``--force``, ask to make again some of a rule's files.

    They name files or rules, and in a module rules have other names; Snakemake has resolved both.
    """
    named, makers = workflow.dag.forcefiles, workflow.dag.forcerules
    return not named.isdisjoint(files) or any(
        maker.is_producer(file) for file in files for maker in makers
    )


def gpu_resources(spec_of):
    """Return the resources with which jobs ask for a GPU, where there is one.

    A job without a GPU has no `gpu_model`, which Slurm would be asked for even with gpu=0, and its
    partition is the profile's default.
    """
    defaults = Resources.from_mapping(
        workflow.resource_settings.default_resources or {}
    )
    usual = defaults.get("slurm_partition")

    def gpu(wildcards, rulename):
        # The jobs of a group must name the same type and partition.
        grouped = rulename in workflow.group_settings.overwrite_groups
        return int(PLAN.on_gpu(checked(spec_of, wildcards.run), grouped=grouped))

    def model(wildcards, rulename):
        return SETTINGS.gpu_model if gpu(wildcards, rulename) else None

    def partition(wildcards, rulename, **more):
        if SETTINGS.gpu_partition and gpu(wildcards, rulename):
            return SETTINGS.gpu_partition
        return usual.evaluate(wildcards, rulename=rulename, **more).value

    return {"gpu": gpu, "gpu_model": model, "slurm_partition": partition}


def train_options(wildcards, input):
    """Return the options of `train` for checkpoints and, of a run in stages, for its inputs."""
    every = ["--checkpoint-seconds", SETTINGS.checkpoint_seconds]
    return every + stage_options(dict(input.items()))


def published_option(wildcards, input):
    """Return the option of scripts that names the published numbers, where there are any."""
    return [part for file in input.reference for part in ("--reference", file)]


def caption_in(file):
    """Return the caption that a file ends with, or "" while there is none; for the report."""
    lines = Path(file).read_text().splitlines() if os.path.exists(file) else []
    return lines[-1] if lines else ""


def covered_message(wildcards):
    """Return what was drawn, and where, in one line."""
    artefacts = PLAN.covered()
    kinds = [artefact.kind for artefact in artefacts]
    return (
        f"{kinds.count('table')} tables and {kinds.count('figure')} figures are in results/tables"
        " and results/figures, and all together in results/report.html"
    )
