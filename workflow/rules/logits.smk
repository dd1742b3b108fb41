"""What trained clients answer, of a one-shot run or of any run that kept its weights."""

if not SETTINGS.frozen:

    rule export_logits:
        input:
            unpack(asked(INPUTS.export_logits)),
        output:
            note="results/clients/{run}/logits.json",
            logits="results/clients/{run}/logits.npz",
        log:
            "logs/export_logits/{run}.log",
        benchmark:
            "benchmarks/jobs/export_logits/{run}.tsv"
        threads: SETTINGS.workers
        resources:
            mem_mb=growing(4000),
            runtime=growing(60),
            gpu=gpus(lambda run: PLAN.trained_weights(run)[-1]),
        params:
            script=here("scripts/export_logits.py"),
            spec=lambda wildcards, input: str(Path(input.note).with_name("spec.json")),
            weights=asked(lambda run: PLAN.trained_weights(run)[1]),
            folder=subpath(output.note, parent=True),
            data=f"{DATA}/prepared",
            device=SETTINGS.device,
            engine=SETTINGS.engine,
            shared=SETTINGS.runs_per_gpu,
        shell:
            "python {params.script:q} --spec {params.spec:q} --weights {params.weights:q}"
            " --out {params.folder:q} --data {params.data:q} --split {input.split:q}"
            " --device {params.device:q} --engine {params.engine} --workers {threads}"
            " --runs-per-gpu {params.shared:q} --quiet > {log:q} 2>&1"

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
            mem_mb=growing(4000),
            runtime=growing(10),
        params:
            script=here("scripts/ensemble.py"),
        shell:
            "python {params.script:q} --function {wildcards.function:q} --logits {input.logits:q}"
            " --out {output:q} > {log:q} 2>&1"
