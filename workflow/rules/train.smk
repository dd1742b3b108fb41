"""One run: one method, one dataset, one division of it, one seed."""

if not SETTINGS.frozen:

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
        params:
            script=here("scripts/train.py"),
            spec="results/plan/runs/{run}.json",
            folder=subpath(output[0], parent=True),
            data=f"{DATA}/prepared",
            split=split_file,
            device=SETTINGS.device,
            bar="" if sys.stderr.isatty() else "--quiet",
        shell:
            "python {params.script} --spec {params.spec} --out {params.folder}"
            " --data {params.data} --split {params.split}"
            " --device {params.device} --workers {threads} {params.bar}"
            " 2> >(tee {log} >&2)"
