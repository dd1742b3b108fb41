"""Tables, figures, and the paper beside ours, from finished runs."""


def drawn(artefacts):
    """Return the files of tables and figures."""
    return [
        f"results/{a.kind}s/{a.paper.paper}/{a.scale}/{a.id}.{suffix}"
        for a in artefacts
        for suffix in (("csv", "md", "tex") if a.kind == "table" else ("png", "pdf"))
    ]


def summaries(papers):
    """Return the comparison of each paper with ours."""
    return [f"results/summary/{paper}/{SETTINGS.scale}/summary.md" for paper in papers]


def artefact_input(wildcards):
    """Return an artefact's file and the results of its runs."""
    artefact = checked(PLAN.artefact, wildcards.paper, wildcards.scale, wildcards.id)
    runs = checked(PLAN.runs, artefact)
    return {
        "artefact": PLAN.artefact_file(artefact),
        "runs": [f"results/runs/{run}/result.json" for run in runs],
    }


def summary_input(wildcards):
    """Return what `compare` reads: the plans of all tables, and the results of their runs."""
    tables = [
        a
        for a in checked(PLAN.of, wildcards.paper, wildcards.scale)
        if a.kind == "table"
    ]
    runs = {run: None for a in tables for run in checked(PLAN.runs, a)}
    return {
        "artefacts": [PLAN.artefact_file(a) for a in tables],
        "runs": [f"results/runs/{run}/result.json" for run in runs],
    }


rule table:
    input:
        unpack(artefact_input),
    output:
        csv=report(
            "results/tables/{paper}/{scale}/{id}.csv",
            category="{paper}",
            subcategory="Tables ({scale})",
            caption="../report/table.rst",
            labels={"table": "{id}"},
        ),
        markdown="results/tables/{paper}/{scale}/{id}.md",
        latex="results/tables/{paper}/{scale}/{id}.tex",
    log:
        "logs/table/{paper}/{scale}/{id}.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/table.py"),
        out=lambda wildcards, output: os.path.splitext(output.csv)[0],
    shell:
        "python {params.script} --artefact {input.artefact} --out {params.out} 2> {log}"


rule figure:
    input:
        unpack(artefact_input),
    output:
        png=report(
            "results/figures/{paper}/{scale}/{id}.png",
            category="{paper}",
            subcategory="Figures ({scale})",
            caption="../report/figure.rst",
            labels={"figure": "{id}"},
        ),
        pdf="results/figures/{paper}/{scale}/{id}.pdf",
    log:
        "logs/figure/{paper}/{scale}/{id}.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/figure.py"),
        out=lambda wildcards, output: os.path.splitext(output.png)[0],
    shell:
        "python {params.script} --artefact {input.artefact} --out {params.out} 2> {log}"


rule compare:
    input:
        unpack(summary_input),
    output:
        report(
            "results/summary/{paper}/{scale}/summary.md",
            category="{paper}",
            subcategory="Summary ({scale})",
            caption="../report/summary.rst",
            labels={"summary": "paper beside ours"},
        ),
    log:
        "logs/compare/{paper}/{scale}.log",
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/compare.py"),
        out=subpath(output[0], parent=True),
        reference=lambda wildcards: here(f"workflow/reference/{wildcards.paper}.csv"),
    shell:
        "python {params.script} --artefacts {input.artefacts} --reference {params.reference}"
        " --out {params.out} 2> {log}"
