"""How a training split is divided among clients: indices, class counts, distances, a picture."""


rule partition:
    input:
        unpack(of_wildcards(INPUTS.partition)),
    output:
        indices="results/partitions/{split}/indices.npz",
        counts="results/partitions/{split}/counts.csv",
        distances="results/partitions/{split}/distances.json",
        bubbles=report(
            "results/partitions/{split}/bubbles.png",
            category="Partitions",
            caption="../report/partition.rst",
            labels={"partition": "{split}"},
        ),
    log:
        "logs/partition/{split}.log",
    benchmark:
        "benchmarks/jobs/partition/{split}.tsv"
    # A number that does not fit the data, such as more classes per client than there are, shows when
    # they are divided: so all data are prepared and divided before the first run trains in vain.
    priority: 10
    resources:
        mem_mb=per_attempt(2000),
        runtime=per_attempt(10),
    params:
        script=project_path("scripts/partition.py"),
        spec="results/plan/partitions/{split}.json",
        data=f"{DATA}/prepared",
        folder=subpath(output.indices, parent=True),
        validation=of_wildcards(INPUTS.validation),
    shell:
        "python {params.script:q} --spec {params.spec:q} --data {params.data:q}"
        " --out {params.folder:q} {params.validation:q} > {log:q} 2>&1"


rule partitions:
    input:
        expand("results/partitions/{split}/indices.npz", split=PLAN.splits()),
    localrule: True
