# The workflow is in workflow/Snakefile; an included file cannot say what is made by default.
include: "workflow/Snakefile"


rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
