"""Tables, figures, and the comparison with the paper, from finished runs.

They take seconds, so they are made where Snakemake runs and not as jobs of a cluster.
"""


rule table:
    input:
        unpack(of_wildcards(INPUTS.table)),
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
    benchmark:
        "benchmarks/jobs/table/{paper}/{scale}/{id}.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/table.py"),
        forget=project_path("scripts/forget_plans.py"),
        out=lambda wildcards, output: os.path.splitext(output.csv)[0],
        caption=lambda wildcards, output: caption_in(output.markdown),
    shell:
        "(python {params.script:q} --artefact {input.artefact:q} --out {params.out:q}"
        " && python {params.forget:q} {input.artefact:q}) > {log:q} 2>&1"


rule figure:
    input:
        unpack(of_wildcards(INPUTS.figure)),
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
    benchmark:
        "benchmarks/jobs/figure/{paper}/{scale}/{id}.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/figure.py"),
        forget=project_path("scripts/forget_plans.py"),
        out=lambda wildcards, output: os.path.splitext(output.png)[0],
        caption=lambda wildcards, output: caption_in(output.caption),
        reference=published_option,
    shell:
        "(python {params.script:q} --artefact {input.artefact:q} {params.reference:q}"
        " --out {params.out:q} && python {params.forget:q} {input.artefact:q}) > {log:q} 2>&1"


rule compare:
    input:
        unpack(of_wildcards(INPUTS.compare)),
        reference=lambda wildcards: INPUTS.reference(wildcards.paper),
    output:
        summary=report(
            "results/summary/{paper}/{scale}/summary.md",
            category="{paper}",
            subcategory="Summary ({scale})",
            caption="../report/summary.rst",
            labels={"summary": "reported and reproduced"},
        ),
        parts=expand(
            "results/summary/{{paper}}/{{scale}}/{part}",
            part=SUMMARY_PARTS,
        ),
    log:
        "logs/compare/{paper}/{scale}.log",
    benchmark:
        "benchmarks/jobs/compare/{paper}/{scale}.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/compare.py"),
        forget=project_path("scripts/forget_plans.py"),
        papers=project_path("workflow/papers"),
        reference=published_option,
        out=subpath(output.summary, parent=True),
    shell:
        "(python {params.script:q} --artefacts {input.artefacts:q} {params.reference:q}"
        " --papers {params.papers:q} --out {params.out:q} && python {params.forget:q} {input.artefacts:q}) > {log:q} 2>&1"


rule record:
    input:
        summaries=of_wildcards(INPUTS.record),
        references=INPUTS.references(),
    output:
        csv="results/record.csv",
        page="results/record.md",
        orders="results/record.orders.csv",
        counts="results/record.counts.md",
        papers="results/record.papers.md",
        png=report(
            "results/record.png",
            category="Record",
            caption="../report/record.rst",
            labels={"record": "every published number"},
        ),
        pdf="results/record.pdf",
    log:
        "logs/record.log",
    benchmark:
        "benchmarks/jobs/record.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/record.py"),
        papers=project_path("workflow/papers"),
        references=lambda wildcards, input: os.path.dirname(input.references[0]),
        own=(["--seeds", *map(str, SETTINGS.seeds)] if SETTINGS.seeds else [])
        + (["--precision", SETTINGS.precision] if SETTINGS.precision else []),
    shell:
        "python {params.script:q} --papers {params.papers:q} --references {params.references:q}"
        " {params.own:q} > {log:q} 2>&1"


rule page:
    input:
        unpack(of_wildcards(INPUTS.page)),
    output:
        "results/report/{paper}/{scale}.html",
    log:
        "logs/page/{paper}/{scale}.log",
    benchmark:
        "benchmarks/jobs/page/{paper}/{scale}.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/page.py"),
        forget=project_path("scripts/forget_plans.py"),
        papers=project_path("workflow/papers"),
    shell:
        "(python {params.script:q} --artefacts {input.artefacts:q} --papers {params.papers:q}"
        " --out {output:q} && python {params.forget:q} {input.artefacts:q}) > {log:q} 2>&1"


rule report:
    input:
        unpack(of_wildcards(INPUTS.report)),
    output:
        report(
            "results/report.html",
            category="Everything",
            caption="../report/report.rst",
            labels={"report": "all papers and scales"},
        ),
    log:
        "logs/report.log",
    benchmark:
        "benchmarks/jobs/report.tsv"
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        script=project_path("scripts/report.py"),
    shell:
        "python {params.script:q} --out {output:q} > {log:q} 2>&1"
