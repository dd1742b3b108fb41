"""Finished runs are kept by DVC, which stores and fetches them; Snakemake makes them."""


rule covered:
    input:
        asked(INPUTS.covered),
    log:
        "logs/covered.log",
    localrule: True
    params:
        told=told_covered,
    shell:
        "echo {params.told:q} | tee {log:q}"


rule publish:
    log:
        "logs/publish.log",
    localrule: True
    params:
        script=here("scripts/publish.py"),
        also=["--with", *SETTINGS.publish] if SETTINGS.publish else [],
    shell:
        "python {params.script:q} {params.also:q} 2>&1 | tee {log:q}"
