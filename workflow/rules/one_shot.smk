"""A one-shot run in stages: methods on the same clients share their training and their logits.

The clients are trained, export their logits (rule export_logits), and these are aggregated into
targets; `train` makes the rest of the run.
"""

if not SETTINGS.frozen:

    use rule train as train_clients with:
        input:
            unpack(of_wildcards(INPUTS.train_clients)),
        output:
            note="results/clients/{run}/clients.json",
            weights="results/clients/{run}/weights.safetensors",
        log:
            "logs/train_clients/{run}.log",
        benchmark:
            "benchmarks/jobs/train_clients/{run}.tsv"
        resources:
            **gpu_resources(PLAN.spec_of_clients),
            mem_mb=per_attempt(4000),
            runtime=per_attempt(720),
        params:
            script=project_path("scripts/train_clients.py"),
            spec="results/plan/clients/{run}.json",
            folder=subpath(output.note, parent=True),
            split=of_wildcards(INPUTS.split_of),
            options=[],

    rule aggregate:
        input:
            unpack(of_wildcards(INPUTS.aggregate)),
        output:
            "results/targets/{run}/targets.npz",
        log:
            "logs/aggregate/{run}.log",
        benchmark:
            "benchmarks/jobs/aggregate/{run}.tsv"
        resources:
            mem_mb=per_attempt(4000),
            runtime=per_attempt(10),
        params:
            script=project_path("scripts/aggregate.py"),
            spec=of_wildcards(INPUTS.spec_file),
        shell:
            "python {params.script:q} --spec {params.spec:q} --logits {input.logits:q}"
            " --out {output:q} > {log:q} 2>&1"
