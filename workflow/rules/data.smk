"""Datasets: fetched from the first source that answers, then prepared as arrays."""

if SETTINGS.mirror:
    os.environ |= {"FEDLOGIT_MIRROR": SETTINGS.mirror}


# Where Snakemake itself runs: nodes of a cluster often have no network.
rule download:
    input:
        of_wildcards(INPUTS.download),
    output:
        f"{DATA}/raw/{{dataset}}/source.json",
    log:
        "logs/download/{dataset}.log",
    benchmark:
        "benchmarks/jobs/download/{dataset}.tsv"
    priority: 10  # as of partitions
    retries: 1  # an address may answer the next time
    localrule: True
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        script=project_path("scripts/download.py"),
        folder=subpath(output[0], parent=True),
    shell:
        "python {params.script:q} {wildcards.dataset:q} --out {params.folder:q} > {log:q} 2>&1"


rule prepare:
    input:
        rules.download.output,
    output:
        card=f"{DATA}/prepared/{{dataset}}.json",
        arrays=f"{DATA}/prepared/{{dataset}}.npz",
    log:
        "logs/prepare/{dataset}.log",
    benchmark:
        "benchmarks/jobs/prepare/{dataset}.tsv"
    priority: 10
    resources:
        mem_mb=per_attempt(4000),
        runtime=per_attempt(30),
    params:
        script=project_path("scripts/prepare.py"),
        raw=subpath(input[0], parent=True),
        folder=subpath(output.card, parent=True),
    shell:
        "python {params.script:q} {wildcards.dataset:q} --raw {params.raw:q} --out {params.folder:q}"
        " > {log:q} 2>&1"


rule tokenise:
    input:
        rules.prepare.output,
    output:
        tokenizer=f"{DATA}/prepared/{{dataset}}.bpe{{vocabulary}}.json",
        tokens=f"{DATA}/prepared/{{dataset}}.bpe{{vocabulary}}.npz",
    log:
        "logs/tokenise/{dataset}.bpe{vocabulary}.log",
    benchmark:
        "benchmarks/jobs/tokenise/{dataset}.bpe{vocabulary}.tsv"
    priority: 10
    resources:
        mem_mb=per_attempt(4000),
        runtime=per_attempt(30),
    params:
        script=project_path("scripts/tokenise.py"),
        folder=subpath(output.tokens, parent=True),
    shell:
        "python {params.script:q} {wildcards.dataset:q} --vocabulary {wildcards.vocabulary:q}"
        " --data {params.folder:q} > {log:q} 2>&1"
