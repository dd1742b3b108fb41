"""Between the rules and `fedlogit.papers.Plan`, which does the thinking."""

# Rules run the Python that runs Snakemake, and find the library, also if neither is activated.
os.environ |= {
    "PATH": os.pathsep.join([os.path.dirname(sys.executable), *os.get_exec_path()]),
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT), *filter(None, [os.getenv("PYTHONPATH")])]
    ),
}


def here(path):
    """Return the path of a file of the project, whatever folder results are written to."""
    return os.path.relpath(ROOT / path)


def checked(function, *args):
    """Call a function; a user's mistake becomes one line instead of a traceback."""
    try:
        return function(*args)
    except FedlogitError as error:
        raise WorkflowError(str(error)) from None


def drawn(artefacts):
    """Return the files of tables and figures."""
    return [
        f"results/{a.kind}s/{a.paper.paper}/{a.scale}/{a.id}.{suffix}"
        for a in artefacts
        for suffix in (("csv", "md", "tex") if a.kind == "table" else ("png", "pdf"))
    ]


def summaries(papers):
    """Return the comparison of each paper with ours, and the runs it rests on.

    A run that is asked for by name is trained where it is missing, also if its tables still exist.
    """

    def files(wildcards):
        artefacts = [a for a in PLAN.artefacts if a.paper.paper in papers]
        runs = dict.fromkeys(r for a in artefacts for r in checked(PLAN.runs, a))
        made = [
            f"results/summary/{paper}/{SETTINGS.scale}/summary.md" for paper in papers
        ]
        return made + [f"results/runs/{run}/result.json" for run in runs]

    return files


def artefact_input(wildcards):
    """Return an artefact's file and the results of its runs."""
    artefact = checked(PLAN.artefact, wildcards.paper, wildcards.scale, wildcards.id)
    runs = checked(PLAN.runs, artefact)
    return {
        "artefact": PLAN.artefact_file(artefact),
        "runs": [f"results/runs/{run}/result.json" for run in runs],
    }


def summary_input(wildcards):
    """Return what `compare` reads: the plans of all tables, and the results of their runs."""
    tables = [
        a
        for a in checked(PLAN.of, wildcards.paper, wildcards.scale)
        if a.kind == "table"
    ]
    runs = {run: None for a in tables for run in checked(PLAN.runs, a)}
    return {
        "artefacts": [PLAN.artefact_file(a) for a in tables],
        "runs": [f"results/runs/{run}/result.json" for run in runs],
    }


def made(path, rule):
    """Return whether a file exists and nobody asked to make it again."""
    forced = workflow.dag_settings.forceall or rule in workflow.dag_settings.forcerun
    return os.path.exists(path) and not forced


def train_input(wildcards):
    """Ask for spec, data and division only where the run is missing.

    A finished run, trained here or pulled, then depends on nothing: neither a newer file nor
    a missing dataset makes it start again. Its folder's name is the hash of all that it depends on.
    """
    spec = checked(PLAN.run, wildcards.run)
    if made(f"results/runs/{wildcards.run}/result.json", "train"):
        return {}
    return {
        "spec": PLAN.spec_file(wildcards.run),
        "data": needed(spec),
        "split": split_file(wildcards),
    }


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
    folder, spec = checked(PLAN.answering, wildcards.run)
    made_by = "clients.json" if folder.startswith("results/clients/") else "result.json"
    return {
        "note": f"{folder}/{made_by}",
        "data": needed(spec),
        "split": divided(spec),
    }


def their_weights(wildcards):
    """Return where the weights of the clients that answer are."""
    folder, _ = checked(PLAN.answering, wildcards.run)
    inside = "" if folder.startswith("results/clients/") else "exports/"
    return f"{folder}/{inside}weights.safetensors"


def distil_input(wildcards):
    """Ask for the clients' answers, and what an aggregator made of them, where the run is missing."""
    run = wildcards.run
    if made(f"results/runs/{run}/result.json", "distil"):
        return {}
    found = {
        "spec": PLAN.spec_file(run),
        "logits": f"results/clients/{PLAN.clients_of(run)}/logits.json",
    }
    if taught(run):
        found["targets"] = f"results/targets/{run}/targets.npz"
    return found


def taught(run):
    """Return whether a run's method teaches a model of the server, which needs targets."""
    return checked(PLAN.run, run).server is not None


def prepared(spec):
    """Return the prepared files of a run's dataset; the card is small, and made last.

    A text has tokens beside it, and the tokenizer that made them.
    """
    stems = [spec.dataset]
    if spec.text:
        stems.append(f"{spec.dataset}.bpe{spec.text.vocabulary}")
    return files_of(stems)


def files_of(stems):
    """Return the two files of each stem in the folder of prepared data."""
    return [
        f"{DATA}/prepared/{s}.{suffix}" for s in stems for suffix in ("json", "npz")
    ]


def needed(spec):
    """Return the prepared files of a run's datasets: its own, and that of foreign public samples."""
    other = spec.public.dataset if spec.public else None
    return prepared(spec) + files_of([other] if other else [])


def partition_input(wildcards):
    """Ask for the data only where the division is missing, so that a pulled one stays."""
    spec = checked(PLAN.split, wildcards.split)
    if made(f"results/partitions/{wildcards.split}/indices.npz", "partition"):
        return {}
    return {"spec": PLAN.split_file(wildcards.split), "data": prepared(spec)}
