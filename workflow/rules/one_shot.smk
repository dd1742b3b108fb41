"""A one-shot run in stages: methods on the same clients share their training and their answers.

Clients train, answer (rule export_logits) and are aggregated; `train` makes the rest of the run.
"""

if not SETTINGS.frozen:

    use rule train as train_clients with:
        input:
            unpack(asked(INPUTS.train_clients)),
        output:
            note="results/clients/{run}/clients.json",
            weights="results/clients/{run}/weights.safetensors",
        log:
            "logs/train_clients/{run}.log",
        benchmark:
            "benchmarks/jobs/train_clients/{run}.tsv"
        resources:
            mem_mb=growing(4000),
            runtime=growing(720),
            gpu=gpus(PLAN.spec_of_clients),
        params:
            script=here("scripts/train_clients.py"),
            spec="results/plan/clients/{run}.json",
            folder=subpath(output.note, parent=True),
            split=asked(INPUTS.split_of),
            more=[],

    rule aggregate:
        input:
            unpack(asked(INPUTS.aggregate)),
        output:
            "results/targets/{run}/targets.npz",
        log:
            "logs/aggregate/{run}.log",
        benchmark:
            "benchmarks/jobs/aggregate/{run}.tsv"
        resources:
            mem_mb=growing(4000),
            runtime=growing(10),
        params:
            script=here("scripts/aggregate.py"),
            spec=asked(INPUTS.spec_file),
        shell:
            "python {params.script:q} --spec {params.spec:q} --logits {input.logits:q}"
            " --out {output:q} > {log:q} 2>&1"
