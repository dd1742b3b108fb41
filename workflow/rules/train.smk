"""One run: one method, one dataset, one division of it, one seed."""


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
        "data": prepared(spec.dataset),
        "split": f"results/partitions/{split_dir(spec)}/indices.npz",
    }


if not SETTINGS.frozen:

    # Where and how it is shown are resources, not params: they do not make it another run.
    rule train:
        input:
            unpack(train_input),
        output:
            "results/runs/{run}/result.json",
        log:
            "logs/train/{run}.log",
        benchmark:
            "benchmarks/jobs/train/{run}.tsv"
        threads: SETTINGS.workers
        resources:
            mem_mb=lambda wildcards, attempt: 4000 * attempt,
            runtime=lambda wildcards, attempt: 720 * attempt,
            gpu=int(SETTINGS.device.startswith("cuda")),
            device=SETTINGS.device,
            bar="" if sys.stderr.isatty() else "--quiet",
        params:
            script=here("scripts/train.py"),
            folder=subpath(output[0], parent=True),
            data=f"{DATA}/prepared",
        shell:
            "python {params.script} --spec {input.spec} --out {params.folder}"
            " --data {params.data} --split {input.split}"
            " --device {resources.device} --workers {threads} {resources.bar} 2> >(tee {log} >&2)"
