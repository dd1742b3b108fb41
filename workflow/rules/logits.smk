"""What trained clients answer, of a one-shot run or of any run that kept its weights."""

if not SETTINGS.frozen:

    rule export_logits:
        input:
            unpack(answering),
        output:
            note="results/clients/{run}/logits.json",
            logits="results/clients/{run}/logits.npz",
        log:
            "logs/export_logits/{run}.log",
        threads: SETTINGS.workers
        resources:
            mem_mb=growing(4000),
            runtime=growing(60),
            gpu=int(SETTINGS.device.startswith("cuda")),
        params:
            script=here("scripts/export_logits.py"),
            spec=lambda wildcards, input: str(Path(input.note).with_name("spec.json")),
            weights=their_weights,
            folder=subpath(output.note, parent=True),
            data=f"{DATA}/prepared",
            device=SETTINGS.device,
            shared=SETTINGS.runs_per_gpu,
        shell:
            "python {params.script} --spec {params.spec} --weights {params.weights}"
            " --out {params.folder} --data {params.data} --split {input.split}"
            " --device {params.device} --runs-per-gpu {params.shared} --workers {threads}"
            " --quiet > {log} 2>&1"

    rule ensemble:
        input:
            logits="results/clients/{run}/logits.npz",
        output:
            "results/ensembles/{run}/{function}.json",
        log:
            "logs/ensemble/{run}/{function}.log",
        resources:
            mem_mb=growing(4000),
            runtime=growing(10),
        params:
            script=here("scripts/ensemble.py"),
        shell:
            "python {params.script} --function {wildcards.function} --logits {input.logits}"
            " --out {output} > {log} 2>&1"
