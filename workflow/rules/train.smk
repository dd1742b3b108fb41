"""One run: one method, one dataset, one partition of it, one seed."""

if not SETTINGS.frozen:

    rule train:
        input:
            unpack(of_wildcards(INPUTS.train)),
        output:
            "results/runs/{run}/result.json",
        log:
            "logs/train/{run}.log",
        benchmark:
            "benchmarks/jobs/train/{run}.tsv"
        threads: SETTINGS.workers
        resources:
            **gpu_resources(PLAN.spec_of_run),
            mem_mb=per_attempt(4000),
            runtime=per_attempt(720),
        params:
            script=project_path("scripts/train.py"),
            spec="results/plan/runs/{run}.json",
            folder=subpath(output[0], parent=True),
            data=f"{DATA}/prepared",
            split=of_wildcards(INPUTS.split_of),
            device=SETTINGS.device,
            engine=SETTINGS.engine,
            runs_per_gpu=SETTINGS.runs_per_gpu,
            options=train_options,
            quiet="" if trains_alone() else "--quiet",
            stdout="> /dev/null" if sys.stderr.isatty() else "",  # beside the line of progress
        # Ctrl-C and a cancelled job send their signal to all processes at once. Training then saves
        # itself and says so: `tee` ignores the signal, writes that, too, and ends with its input.
        # Without `exec`, a shell between would die of the signal before training has ended.
        shell:
            "exec python {params.script:q} --spec {params.spec:q} --out {params.folder:q}"
            " --data {params.data:q} --split {params.split:q}"
            " --device {params.device:q} --engine {params.engine} --workers {threads}"
            " --runs-per-gpu {params.runs_per_gpu:q} {params.options:q} {params.quiet:q} {params.stdout} 2> >(trap '' INT TERM; exec tee {log:q} >&2)"
