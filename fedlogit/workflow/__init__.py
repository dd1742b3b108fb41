"""Between Snakemake and the library: what each rule reads, and what its messages become.

`workflow/Snakefile` and its rules call this; it neither imports Snakemake nor trains anything.
"""

from fedlogit.workflow.rule_inputs import SUMMARY_PARTS, RuleInputs
from fedlogit.workflow.snakemake_log import shorten_messages
from fedlogit.workflow.step_errors import error_in, failure

__all__ = ["SUMMARY_PARTS", "RuleInputs", "error_in", "failure", "shorten_messages"]
