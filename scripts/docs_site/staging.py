"""Pages and files of the site, gathered in one folder: each page brings along what it links to."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fedlogit.errors import DataError
from fedlogit.results.formatting import write_text
from fedlogit.results.pages.commands import command
from scripts.docs_site.links import relinked, with_mentions_linked
from scripts.docs_site.markdown_dialect import for_mkdocs

__all__ = ["Stage"]

# Files whose page has another place in the site.
_MOVED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "config/README.md": "configuration.md",
}
# Files and folders in whose place a page is shown that is made of them or of the same models.
_INSTEAD = {
    "README.md": "index.md",
    "docs": "index.md",
    "config.yaml": "reference/config.md",
    "fedlogit/commands": "reference/commands.md",
    "fedlogit/methods": "reference/methods.md",
    "fedlogit/models": "reference/models.md",
    "fedlogit/partition": "reference/partitions.md",
    "fedlogit/results/metrics": "reference/metrics.md",
    "results/figures": "gallery/index.md",
    "results/record.md": "record-table.md",
    "workflow/schemas/config.schema.json": "reference/config.md",
    "workflow/schemas/paper.schema.json": "reference/paper-file.md",
    "workflow/schemas/run.schema.json": "reference/spec.md",
}
# Each of many tables names methods; the pages that explain them come first.
_FOUND_LAST = "---\nsearch: {boost: 0.3}\n---\n"
# Names in code would hide the pages that explain them.
_NOT_SEARCHED = "---\nsearch: {exclude: true}\n---\n"
_GALLERY = re.compile(r"results/figures/(\w+)")
_RESULT = re.compile(r"results/(tables|summary)/(\w+)/(\w+)/(\w+)\.md")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".smk": "python", ".cff": "yaml"}
_AS_IT_IS = {".png", ".svg", ".pdf", ".csv", ".tex"}


class Stage:
    """A folder that becomes MkDocs' ``docs_dir``.

    Attributes:
        root: The repository.
        out: The folder.
        papers: What to call each paper.
    """

    def __init__(self, root: Path, out: Path, papers: Mapping[str, str]) -> None:
        self.root, self.out, self.papers = root.resolve(), out, papers
        self._done: set[str] = set()

    def add(self, path: str) -> str:
        """Add a file or folder of the repository, and what it links to; return its place.

        Args:
            path: From the repository's root, such as ``docs/scales.md`` or ``results/record.png``.

        Raises:
            DataError: if it does not exist, or a page links to what does not exist.
        """
        source = self.root / path
        if not source.exists():
            raise DataError(f"{path} does not exist")
        gallery = _GALLERY.fullmatch(path)
        if path in _INSTEAD or gallery:
            return f"gallery/{gallery[1]}.md" if gallery else _INSTEAD[path]
        place = _place(path, source)
        if place in self._done:
            return place
        self._done.add(place)
        if source.is_dir():
            self.page(place, _listing(path, source), path)
        elif source.suffix == ".md":
            text = _titled(source.read_text(encoding="utf-8"), path)
            self.page(place, _with_origin(text, path, self.papers), path)
        elif source.suffix in _AS_IT_IS:
            (self.out / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, self.out / place)
        else:
            text = source.read_text(encoding="utf-8")
            language = _LANGUAGES.get(source.suffix, "text")
            code = f"# `{path}`\n\n``````{language}\n{text}\n``````\n"
            self.page(place, f"{_NOT_SEARCHED}{code}", path)
        return place

    def page(self, place: str, text: str, of: str) -> None:
        """Write a page.

        Args:
            place: Of the page in the site.
            text: Its Markdown, with links as in the file `of`.
            of: A path in the repository, relative to which links are.
        """
        folder = PurePosixPath(of) if (self.root / of).is_dir() else PurePosixPath(of).parent

        def target(link: str) -> str:
            path = os.path.normpath(folder / link)
            try:
                return os.path.relpath(self.add(path), PurePosixPath(place).parent)
            except DataError as error:
                raise DataError(f"{of}: a link names {link}, but {error}") from None

        self._done.add(place)
        (self.out / place).parent.mkdir(parents=True, exist_ok=True)
        linked = with_mentions_linked(text, lambda mention: self._link(mention, folder))
        write_text(self.out / place, for_mkdocs(relinked(linked, target)))

    def _link(self, mention: str, folder: PurePosixPath) -> str | None:
        """Return the link to a page whose path a text mentions; None if there is no such page."""
        return os.path.relpath(mention, folder) if (self.root / mention).is_file() else None


def _place(path: str, source: Path) -> str:
    """Return where a path of the repository lies in the site."""
    if path in _MOVED:
        return _MOVED[path]
    if source.is_dir():
        return f"source/{path}/index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if source.suffix in _AS_IT_IS or (source.suffix == ".md" and path.startswith("results/")):
        return path
    return path.lower() if source.suffix == ".md" else f"source/{path}.md"


def _listing(path: str, folder: Path) -> str:
    """Return a page of what lies in a folder: pages where there are some, else all files."""
    found = sorted(folder.rglob("*.md")) or sorted(p for p in folder.iterdir() if p.is_file())
    names = [file.relative_to(folder).as_posix() for file in found]
    return "\n".join([f"# `{path}`", "", *(f"- [{name}]({name})" for name in names)])


def _titled(text: str, path: str) -> str:
    """Return a page that begins with a title: its first heading or line in bold, or its path."""
    if re.match(r"(<!--.*?-->\s*)?# ", text, re.S):
        return text
    if part := re.match(r"#(#+) (.*)", text):  # its first heading becomes the title
        risen = re.sub(rf"^{part[1]}(?=# |##)", "", text[part.end() :], flags=re.M)
        return f"# {part[2]}{re.sub('^# ', '## ', risen, flags=re.M)}"
    first, _, rest = text.partition("\n")
    bold = re.fullmatch(r"\*\*(.+)\*\*", first.strip())
    return f"# {bold[1]}\n{rest}" if bold else f"# `{path}`\n\n{text}"


def _with_origin(text: str, path: str, papers: Mapping[str, str]) -> str:
    """Return a page of results with its paper and scale, and how it is made; any other as it is."""
    found = _RESULT.fullmatch(path)
    if not found:
        return text
    kind, paper, scale, name = found.groups()
    docs = "../../../../docs"
    title, _, rest = text.partition("\n")
    if "scale" not in title:
        title = f"{title} ({papers[paper]}, scale `{scale}`)"
    part = (
        f"{_FOUND_LAST}{title}\n{rest}\n\nPart of [{papers[paper]}]({docs}/papers/{paper}.md) at"
        f" [scale]({docs}/scales.md) `{scale}`."
    )
    if kind == "summary":
        return part
    return (
        f"{part} Files: [CSV]({name}.csv), [LaTeX]({name}.tex);"
        f" [from a cell to its runs]({docs}/run-folder.md#what-is-made-of-runs). To make it from"
        " the finished runs, after `make pull`:\n\n"
        f"```bash\n{command(paper, scale, Path(path).with_suffix('.csv'))}\n```\n"
    )
