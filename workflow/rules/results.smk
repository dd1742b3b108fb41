"""Tables, figures, and the paper beside ours, from finished runs.

They take seconds, so they are made where Snakemake runs and not as jobs of a cluster.
"""


rule table:
    input:
        unpack(asked(INPUTS.artefact)),
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
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/table.py"),
        forget=here("scripts/forget_plans.py"),
        out=lambda wildcards, output: os.path.splitext(output.csv)[0],
        told=lambda wildcards, output: told(output.markdown),
    shell:
        "(python {params.script:q} --artefact {input.artefact:q} --out {params.out:q}"
        " && python {params.forget:q} {input.artefact:q}) > {log:q} 2>&1"


rule figure:
    input:
        unpack(asked(INPUTS.artefact)),
        reference=lambda wildcards: INPUTS.reference(wildcards.paper),
    output:
        png=report(
            "results/figures/{paper}/{scale}/{id}.png",
            category="{paper}",
            subcategory="Figures ({scale})",
            caption="../report/figure.rst",
            labels={"figure": "{id}"},
        ),
        pdf="results/figures/{paper}/{scale}/{id}.pdf",
        caption="results/figures/{paper}/{scale}/{id}.md",
    log:
        "logs/figure/{paper}/{scale}/{id}.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/figure.py"),
        forget=here("scripts/forget_plans.py"),
        out=lambda wildcards, output: os.path.splitext(output.png)[0],
        told=lambda wildcards, output: told(output.caption),
        reference=published_option,
    shell:
        "(python {params.script:q} --artefact {input.artefact:q} {params.reference:q}"
        " --out {params.out:q} && python {params.forget:q} {input.artefact:q}) > {log:q} 2>&1"


rule compare:
    input:
        unpack(asked(INPUTS.compare)),
        reference=lambda wildcards: INPUTS.reference(wildcards.paper),
    output:
        summary=report(
            "results/summary/{paper}/{scale}/summary.md",
            category="{paper}",
            subcategory="Summary ({scale})",
            caption="../report/summary.rst",
            labels={"summary": "paper beside ours"},
        ),
        parts=expand(
            "results/summary/{{paper}}/{{scale}}/{part}",
            part=[
                "compare.csv",
                "compare.md",
                "claims.csv",
                "claims.md",
                "metrics.json",
            ],
        ),
    log:
        "logs/compare/{paper}/{scale}.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/compare.py"),
        forget=here("scripts/forget_plans.py"),
        reference=published_option,
        out=subpath(output.summary, parent=True),
    shell:
        "(python {params.script:q} --artefacts {input.artefacts:q} {params.reference:q}"
        " --out {params.out:q} && python {params.forget:q} {input.artefacts:q}) > {log:q} 2>&1"


rule page:
    input:
        unpack(asked(INPUTS.page)),
    output:
        report(
            "results/report/{paper}/{scale}.html",
            category="{paper}",
            subcategory="All on one page",
            caption="../report/page.rst",
            labels={"scale": "{scale}"},
        ),
    log:
        "logs/page/{paper}/{scale}.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/page.py"),
        forget=here("scripts/forget_plans.py"),
    shell:
        "(python {params.script:q} --artefacts {input.artefacts:q} --out {output:q}"
        " && python {params.forget:q} {input.artefacts:q}) > {log:q} 2>&1"


rule record:
    input:
        asked(INPUTS.record),
    output:
        csv="results/record.csv",
        markdown="results/record.md",
        png=report(
            "results/record.png",
            category="All papers",
            caption="../report/record.rst",
            labels={"figure": "published numbers and ours"},
        ),
        pdf="results/record.pdf",
    log:
        "logs/record.log",
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=here("scripts/record.py"),
        papers=here("workflow/papers"),
        references=here("workflow/reference"),
        out=lambda wildcards, output: os.path.splitext(output.csv)[0],
    shell:
        "python {params.script:q} --papers {params.papers:q} --references {params.references:q}"
        " --out {params.out:q} > {log:q} 2>&1"
