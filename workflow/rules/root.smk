"""Where the project's files are, also if another workflow takes this one as a module."""

import shutil
import subprocess
import tempfile

from snakemake.sourcecache import LocalGitFile, LocalSourceFile


def unpacked(repository, ref):
    """Return the folder with a commit's files, which rules need beside their own: scripts, papers.

    Of a module from a Git repository Snakemake fetches the workflow's files alone. The folder is
    below the working directory, so that all nodes of a cluster see it.
    """
    git = ["git", "-C", str(repository)]
    commit = subprocess.run(
        [*git, "rev-parse", f"{ref}^{{commit}}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    folder = Path(".snakemake", "modules", commit).absolute()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = tempfile.mkdtemp(dir=folder.parent)
        try:
            archive = subprocess.run(
                [*git, "archive", commit], check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "-x", "-C", new], input=archive, check=True)
            os.rename(new, folder)
        except (OSError, subprocess.CalledProcessError):
            if not folder.exists():  # else another process was first
                raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


def root(rules):
    """Return the folder of the project, given that of this file."""
    if isinstance(rules, LocalSourceFile):
        return Path(str(rules)).parents[1]
    if isinstance(rules, LocalGitFile):
        return unpacked(rules.repo_path, rules.ref)
    return unpacked(rules.hosted_repo.repo_clone, rules.ref)


ROOT = root(workflow.current_basedir)
sys.path.insert(0, str(ROOT))
