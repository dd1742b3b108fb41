"""The runner of mutation tests on a package of one module: one mutant dies, one lives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mutation import run
from mutation.forks import Change, Outcome, Run, Tree
from mutation.page import page, rate

ROOT = Path(__file__).resolve().parents[2]
MODULE = "def twice(x):\n    return x + x\n\n\ndef shown(x):\n    return str(x)\n"
TEST = "from fedlogit.sums import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"
ENDLESS = "def twice(x):\n    while True: pass"
SCOPES = [{"scope": "sums", "files": ["fedlogit/*.py"], "tests": ["tests/sums"], "first": {}}]
HEAD = {"seed": 0, "candidates": {"sums": 9}, "rules": "- none.", "tools": {"mutmut": "3"}}


def mutant(old: str, new: str, function: str = "twice") -> dict:
    start = MODULE.index(old)
    return {
        "key": new, "scope": "sums", "file": "fedlogit/sums.py", "function": function, "line": 2,
        "operator": "swap_op", "start": start, "end": start + len(old), "new": new,
        "removed": old, "added": new,
    }  # fmt: skip


DIES = mutant("x + x", "x - x")
LIVES = mutant("str(x)", "str(None)", "shown")
CANNOT_BE_IMPORTED = mutant("def twice(x)", "def thrice(x)")
NEVER_ENDS = mutant("def twice(x):", ENDLESS)


@pytest.fixture
def project(tmp_path) -> Path:
    """A project of one module and one test."""
    files = {
        "fedlogit/__init__.py": "",
        "fedlogit/sums.py": MODULE,
        "tests/sums/test_sums.py": TEST,
        "scopes.yaml": yaml.safe_dump(SCOPES),
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def write_sample(project: Path, *mutants: dict) -> None:
    lines = [json.dumps(line) + "\n" for line in (HEAD, *mutants)]
    (project / "sample.jsonl").write_text("".join(lines))


def mutation_test(project: Path, **changed: None) -> subprocess.CompletedProcess[str]:
    """Run the runner on a project, in a process of its own: it forks. None drops an option."""
    program = (
        "import sys; from mutation import forks, run; forks.LIBRARIES = ('pytest',)\n"
        "run._PATIENCE, run._GRACE = 0, 10.0\n"
        "sys.exit(run.main(sys.argv[1:]))"
    )
    options = {"root": ".", "scopes": "scopes.yaml", "sample": "sample.jsonl", "work": "work",
               "named": "named.yaml", "reasons": "reasons.yaml", "page": "page.md"}  # fmt: skip
    options |= changed
    arguments = [word for key, value in options.items() if value for word in (f"--{key}", value)]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=project, env={"PYTHONPATH": str(ROOT / "tests"), "PATH": ""}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("scope", yaml.safe_load((ROOT / "tests/mutation/scopes.yaml").read_text()))
def test_every_pattern_of_a_scope_names_a_file(scope):
    first = " ".join(scope.get("first", {}).values()).split()
    for pattern in [*scope["files"], *scope["tests"], *first]:
        assert list(ROOT.glob(pattern)), pattern


def test_mutants_die_and_live_as_the_tests_say(project):
    write_sample(project, DIES, LIVES, CANNOT_BE_IMPORTED, NEVER_ENDS)
    result = mutation_test(project)
    assert "sample: 3 of 4 killed (75.0 %)" in result.stdout, result.stderr
    record = (project / "work/record.jsonl").read_text().splitlines()
    outcomes = {entry["key"]: entry for entry in map(json.loads, record[1:])}
    assert {key: outcome["status"] for key, outcome in outcomes.items()} == {
        "x - x": "killed",
        "str(None)": "survived",
        "def thrice(x)": "import",
        ENDLESS: "timeout",
    }
    assert outcomes["x - x"]["by"] == "tests/sums/test_sums.py::test_twice"
    assert result.returncode == 1  # three quarters are fewer than nine tenths
    assert (project / "fedlogit/sums.py").read_text() == MODULE


def test_a_stopped_run_goes_on_and_a_changed_test_begins_anew(project):
    write_sample(project, DIES)
    assert mutation_test(project).returncode == 0
    assert "1/1" not in mutation_test(project).stdout  # nothing is left to be tested
    (project / "tests/sums/test_sums.py").write_text(TEST + "\n")
    assert "1/1 killed" in mutation_test(project).stdout


def write_hand_written(project: Path, name: str, old: str, new: str) -> None:
    """Write a list of one hand-written mutant."""
    entry = {"name": name, "file": "fedlogit/sums.py", "old": old, "new": new,
             "tests": "tests/sums/test_sums.py"}  # fmt: skip
    (project / "named.yaml").write_text(yaml.safe_dump([entry]))


def test_a_hand_written_mutant_must_die(project):
    write_sample(project, DIES)
    write_hand_written(project, "shows nothing", "str(x)", "''")
    result = mutation_test(project)
    told = "hand-written: 0 of 1 killed (0.0 %); sample: 1 of 1 killed (100.0 %)\n"
    assert result.stdout.endswith(told), result.stderr
    assert result.returncode == 1
    assert "| shows nothing | **survives** |" in (project / "page.md").read_text()


def test_without_a_sample_only_the_section_of_hand_written_mutants_is_written(project):
    write_sample(project, DIES, LIVES)
    write_hand_written(project, "shows nothing", "str(x)", "''")
    mutation_test(project)
    before = (project / "page.md").read_text()
    write_hand_written(project, "doubles nothing", "x + x", "x - x")
    result = mutation_test(project, sample=None)
    assert (result.returncode, result.stderr) == (0, "")
    after = (project / "page.md").read_text()
    line = "| doubles nothing | `tests/sums/test_sums.py::test_twice` |"
    assert line in after
    assert "0 of 1 killed (0.0 %) on" in before
    assert before == after.replace(line, "| shows nothing | **survives** |").replace(
        "1 of 1 killed (100.0 %) on", "0 of 1 killed (0.0 %) on"
    )


def test_tests_must_pass_without_a_mutation(project):
    write_sample(project, DIES)
    (project / "tests/sums/test_sums.py").write_text(TEST.replace("== 4", "== 5"))
    result = mutation_test(project)
    assert "tests of sums fail without a mutation: tests/sums/test_sums.py" in result.stderr


def test_a_named_mutant_must_replace_something(project):
    (project / "named.yaml").write_text(
        "- {name: odd, file: fedlogit/sums.py, old: 'x * x', new: x, tests: tests/sums}"
    )
    with pytest.raises(ValueError, match="odd: `old` stands not once in its file"):
        run.named(project / "named.yaml", project)


def test_a_module_s_own_tests_come_first(project):
    (project / "tests/sums/test_all.py").touch()
    scopes = {"sums": SCOPES[0]}
    own, other = "tests/sums/test_sums.py", "tests/sums/test_all.py"
    assert run.tests_of(DIES, scopes, project) == [own, other]
    scopes = {"sums": SCOPES[0] | {"first": {"parts": other}}}
    assert run.tests_of(DIES | {"file": "fedlogit/parts.py"}, scopes, project) == [other, own]


def test_a_change_is_taken_back_with_its_time(project, tmp_path):
    tree = Tree(project, tmp_path / "tree")
    path = tree.folder / "fedlogit/sums.py"
    time = path.stat().st_mtime_ns
    with tree.changed(Change("fedlogit/sums.py", 0, 3, "async def")):
        assert path.read_text() == MODULE.replace("def", "async def", 1)
        assert path.stat().st_mtime_ns != time  # or Python would take what it compiled before
    assert (path.read_text(), path.stat().st_mtime_ns) == (MODULE, time)


def test_tests_that_are_stopped_are_gone(project, tmp_path):
    endless = project / "tests/sums/test_endless.py"
    endless.write_text("def test_it():\n    while True: pass\n")
    process = Run(project, ["tests/sums/test_endless.py"], 60.0, tmp_path / "log")
    assert process.poll() is None
    process.stop()
    with pytest.raises(ChildProcessError):
        process.poll()


def test_the_page_says_why_a_mutant_lives_or_that_nobody_has(tmp_path):
    reasons = tmp_path / "reasons.yaml"
    known = {key: LIVES[key] for key in ("file", "function", "removed", "added")}
    reasons.write_text(yaml.safe_dump([known | {"reason": "Nobody reads it."}]))
    outcome = Outcome("survived", 1.0)
    text = page(HEAD, [(LIVES, outcome), (DIES, outcome)], reasons, 3)
    assert "| `str(x)` → `str(None)` | Nobody reads it. |" in text
    assert "| `x + x` → `x - x` | *Not explained.* |" in text
    assert "| sums | 9 | 2 | 0 | 2 | 0.0 % |" in text
    assert "2 of the 3 mutants drawn were tested; the run was ended before the rest." in text


def test_rates_count_all_that_do_not_survive():
    statuses = ["killed", "import", "timeout", "crashed", "survived"]
    found = rate([({}, Outcome(status, 1.0)) for status in statuses])
    assert (found.killed, found.all, found.share) == (4, 5, 0.8)
