"""The cache of finished runs, which DVC stores and fetches."""


rule covered:
    input:
        of_wildcards(INPUTS.covered),
    log:
        "logs/covered.log",
    localrule: True
    params:
        message=covered_message,
    shell:
        "echo {params.message:q} | tee {log:q}"


rule publish:
    log:
        "logs/publish.log",
    localrule: True
    params:
        script=project_path("scripts/publish.py"),
        also=["--with", *SETTINGS.publish] if SETTINGS.publish else [],
    shell:
        "python {params.script:q} {params.also:q} 2>&1 | tee {log:q}"
