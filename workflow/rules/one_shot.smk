"""A one-shot run in stages: methods on the same clients share their training and their answers."""

import re

# Snakemake's own targets are not known yet when rules are read. A run that this misses is made in
# one piece, to the same bits.
STAGED = checked(PLAN.staged, sys.argv[1:])


if STAGED and not SETTINGS.frozen:

    ruleorder: distil > train

    rule train_clients:
        input:
            unpack(clients_input),
        output:
            note="results/clients/{run}/clients.json",
            weights="results/clients/{run}/weights.safetensors",
        log:
            "logs/train_clients/{run}.log",
        benchmark:
            "benchmarks/jobs/train_clients/{run}.tsv"
        threads: SETTINGS.workers
        resources:
            mem_mb=growing(4000),
            runtime=growing(720),
            gpu=gpus(PLAN.clients),
        params:
            script=here("scripts/train_clients.py"),
            spec="results/plan/clients/{run}.json",
            folder=subpath(output.note, parent=True),
            data=f"{DATA}/prepared",
            split=clients_split,
            device=SETTINGS.device,
            engine=SETTINGS.engine,
            shared=SETTINGS.runs_per_gpu,
            bar="" if sys.stderr.isatty() else "--quiet",
        shell:
            "exec python {params.script:q} --spec {params.spec:q} --out {params.folder:q}"
            " --data {params.data:q} --split {params.split:q}"
            " --device {params.device:q} --engine {params.engine} --runs-per-gpu {params.shared:q} --workers {threads}"
            " {params.bar:q} 2> >(trap '' INT TERM; exec tee {log:q} >&2)"

    rule aggregate:
        input:
            logits=lambda wildcards: f"results/clients/{PLAN.clients_of(wildcards.run)}/logits.npz",
        output:
            "results/targets/{run}/targets.npz",
        log:
            "logs/aggregate/{run}.log",
        resources:
            mem_mb=growing(4000),
            runtime=growing(10),
        params:
            script=here("scripts/aggregate.py"),
            spec=lambda wildcards: checked(PLAN.spec_file, wildcards.run),
        shell:
            "python {params.script:q} --spec {params.spec:q} --logits {input.logits:q}"
            " --out {output:q} > {log:q} 2>&1"

    rule distil:
        input:
            unpack(distil_input),
        output:
            "results/runs/{run}/result.json",
        log:
            "logs/distil/{run}.log",
        benchmark:
            "benchmarks/jobs/distil/{run}.tsv"
        wildcard_constraints:
            run="|".join(re.escape(run) for run in STAGED),
        threads: SETTINGS.workers
        resources:
            mem_mb=growing(4000),
            runtime=growing(720),
            gpu=gpus(PLAN.run),
        params:
            script=here("scripts/distil.py"),
            spec="results/plan/runs/{run}.json",
            clients=lambda wildcards: f"results/clients/{PLAN.clients_of(wildcards.run)}",
            targets=lambda wildcards, input: (
                ["--targets", input.targets] if "targets" in input.keys() else []
            ),
            folder=subpath(output[0], parent=True),
            data=f"{DATA}/prepared",
            split=split_file,
            device=SETTINGS.device,
            engine=SETTINGS.engine,
            shared=SETTINGS.runs_per_gpu,
            every=SETTINGS.checkpoint_seconds,
            bar="" if sys.stderr.isatty() else "--quiet",
        shell:
            "exec python {params.script:q} --spec {params.spec:q} --out {params.folder:q}"
            " --weights {params.clients:q}/weights.safetensors"
            " --logits {params.clients:q}/logits.npz {params.targets:q}"
            " --data {params.data:q} --split {params.split:q}"
            " --device {params.device:q} --engine {params.engine} --runs-per-gpu {params.shared:q} --workers {threads}"
            " --checkpoint-seconds {params.every:q} {params.bar:q}"
            " 2> >(trap '' INT TERM; exec tee {log:q} >&2)"
