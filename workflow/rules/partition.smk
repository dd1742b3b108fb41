"""How a training split is divided among clients: indices, class counts, distances, a picture."""


def prepared(dataset):
    """Return the prepared files of a dataset; the card is small, and made last."""
    return [f"{DATA}/prepared/{dataset}.json", f"{DATA}/prepared/{dataset}.npz"]


def partition_input(wildcards):
    """Ask for the data only where the division is missing, so that a pulled one stays."""
    spec = checked(PLAN.split, wildcards.split)
    if made(f"results/partitions/{wildcards.split}/indices.npz", "partition"):
        return {}
    return {"spec": PLAN.split_file(wildcards.split), "data": prepared(spec.dataset)}


rule partition:
    input:
        unpack(partition_input),
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
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        script=here("scripts/partition.py"),
        folder=subpath(output.indices, parent=True),
        data=f"{DATA}/prepared",
    shell:
        "python {params.script} --spec {input.spec} --data {params.data}"
        " --out {params.folder} 2> {log}"
