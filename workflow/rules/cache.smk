"""Finished runs are kept by DVC, which stores and fetches them; Snakemake makes them."""


rule covered:
    input:
        covered,
    localrule: True


rule publish:
    log:
        "logs/publish.log",
    localrule: True
    params:
        script=here("scripts/publish.py"),
        also=" ".join(["--with", *SETTINGS.publish] if SETTINGS.publish else []),
    shell:
        "python {params.script} {params.also} 2>&1 | tee {log}"
