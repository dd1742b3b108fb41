"""One run: one method, one dataset, one division of it, one seed."""

if not SETTINGS.frozen:

    # Where it runs and how it is shown are resources, not params: they do not make it another run.
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
            script=here("scripts/train.py"),
            data=f"{DATA}/prepared",
        params:
            spec="results/plan/runs/{run}.json",
            split=split_file,
            folder=subpath(output[0], parent=True),
        shell:
            "python {resources.script} --spec {params.spec} --out {params.folder}"
            " --data {resources.data} --split {params.split}"
            " --device {resources.device} --workers {threads} {resources.bar}"
            " 2> >(tee {log} >&2)"
