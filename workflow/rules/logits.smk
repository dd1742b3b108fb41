"""Logits of trained clients: of a one-shot run, or of any run that kept its weights."""

if not SETTINGS.frozen:

    rule export_logits:
        input:
            unpack(of_wildcards(INPUTS.export_logits)),
        output:
            note="results/clients/{run}/logits.json",
            logits="results/clients/{run}/logits.npz",
        log:
            "logs/export_logits/{run}.log",
        benchmark:
            "benchmarks/jobs/export_logits/{run}.tsv"
        threads: SETTINGS.workers
        resources:
            **gpu_resources(lambda run: PLAN.trained_weights(run)[-1]),
            mem_mb=per_attempt(4000),
            runtime=per_attempt(60),
        params:
            script=project_path("scripts/export_logits.py"),
            spec=lambda wildcards, input: str(Path(input.note).with_name(layout.SPEC)),
            weights=of_wildcards(lambda run: PLAN.trained_weights(run)[1]),
            folder=subpath(output.note, parent=True),
            data=f"{DATA}/prepared",
            device=SETTINGS.device,
            engine=SETTINGS.engine,
            runs_per_gpu=SETTINGS.runs_per_gpu,
        shell:
            "python {params.script:q} --spec {params.spec:q} --weights {params.weights:q}"
            " --out {params.folder:q} --data {params.data:q} --split {input.split:q}"
            " --device {params.device:q} --engine {params.engine} --workers {threads}"
            " --runs-per-gpu {params.runs_per_gpu:q} --quiet > {log:q} 2>&1"

    rule ensemble:
        input:
            logits=rules.export_logits.output.logits,
        output:
            "results/ensembles/{run}/{function}.json",
        log:
            "logs/ensemble/{run}/{function}.log",
        benchmark:
            "benchmarks/jobs/ensemble/{run}/{function}.tsv"
        resources:
            mem_mb=per_attempt(4000),
            runtime=per_attempt(10),
        params:
            script=project_path("scripts/ensemble.py"),
        shell:
            "python {params.script:q} --function {wildcards.function:q} --logits {input.logits:q}"
            " --out {output:q} > {log:q} 2>&1"
