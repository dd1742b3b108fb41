from __future__ import annotations

import subprocess

import pytest

from fedlogit import cli
from fedlogit.cli import command_names, main
from fedlogit.commands import completion
from fedlogit.errors import FedlogitError

pytestmark = pytest.mark.slow  # it imports every command


def test_bash_completes_commands_and_their_options(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "fedlogit.bash"
    script.write_text(
        capsys.readouterr().out
        + "\nCOMP_WORDS=(fedlogit summary --sc); COMP_CWORD=2; _shtab_fedlogit"
        + "\necho ${COMPREPLY[@]}"
        + "\nCOMP_WORDS=(fedlogit su); COMP_CWORD=1; _shtab_fedlogit"
        + "\necho ${COMPREPLY[@]}\n"
    )
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["--scale", "summary"], done.stderr


def test_a_command_whose_packages_are_missing_is_completed_without_options(monkeypatch):
    def lacking(name):
        raise FedlogitError(f"{name} needs a package")

    monkeypatch.setattr(completion, "load", lacking)
    shown = completion.every_command().format_help()
    assert all(name in shown for name in command_names())


def test_another_shell_is_one_line():
    with pytest.raises(FedlogitError, match="invalid choice: 'fish'"):
        main(["completion", "fish"])


def test_the_program_that_pip_installs_is_the_same(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fedlogit", "--help"])
    with pytest.raises(SystemExit) as ended:
        cli.console()
    assert ended.value.code == 0
    assert "completion" in capsys.readouterr().out
