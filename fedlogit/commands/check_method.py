"""Test a method, such as one of your own, for what every method must guarantee.

    python -m fedlogit check_method my_package.my_module:Median
    python -m fedlogit check_method "uwa(fit='em')"
    python -m fedlogit check_method my_package.my_module:Median --spec spec.json

Trains for seconds: without a spec, four clients on scikit-learn's digits for three rounds. The exit
code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from fedlogit import methods
from fedlogit.commands._folders import data_folder
from fedlogit.commands._values import given_path
from fedlogit.files import read_json
from fedlogit.runs.conformance import SMALL_SPEC, Finding, findings
from fedlogit.runs.setup import open_data
from fedlogit.spec import RunSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("method", help="a name or package.module:Class, with parameters if needed")
    parser.add_argument(
        "--spec", type=given_path, help="spec (JSON) of a short run that suits the method"
    )
    data_folder(parser)


def main(args: argparse.Namespace) -> int:
    """Carry the command out; return the exit code."""
    given = read_json(args.spec) if args.spec else SMALL_SPEC
    where = str(args.spec) if args.spec else "the spec"
    spec = methods.resolve(RunSpec.read(given | {"method": args.method}, where))
    failed = 0
    dataset, _ = open_data(spec, args.data, split=None)
    with TemporaryDirectory(prefix="fedlogit-check-") as folder:
        for finding in findings(spec, dataset, Path(folder)):
            print(_line(finding), flush=True)
            failed += bool(finding.wrong)
    print(f"{spec.method.name} on {spec.dataset}: {failed or 'no'} checks failed")
    return 1 if failed else 0


def _line(finding: Finding) -> str:
    if finding.wrong:
        return f"FAILED   {finding.check}: {finding.wrong}"
    if finding.skipped:
        return f"skipped  {finding.check}: {finding.skipped}"
    return f"ok       {finding.check}"
