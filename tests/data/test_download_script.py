"""Sources are tried in order; what is kept is right and complete, or nothing is kept."""

import dataclasses
import gzip
import json
import os
import stat
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread

import numpy as np
import pytest
from support.refusals import refused

from fedlogit.cli import call, run_main
from fedlogit.data import DATASETS, transport
from fedlogit.data.decode import FORMATS
from fedlogit.data.download import download, read_mark
from fedlogit.data.sources import read_sources
from fedlogit.errors import DataError, FedlogitError

MIRROR = "  - {kind: mirror, format: npz}\n"
NPM = "  - {kind: npm, format: idx, package: tiny-data@1.0.0}\n"
APT = "  - {kind: apt, format: idx, package: dataset-tiny}\n"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return a function that puts a shell script in place of a client; no others are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name, script):
        path = folder / name
        path.write_text(f"#!/bin/sh\nPATH={os.defpath}:/bin:/usr/bin\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IEXEC)

    return add


def url(folder, names, digests=""):
    files = ", ".join(names)
    return f"  - {{kind: url, format: idx, base: ['{folder}'], files: [{files}]{digests}}}\n"


@pytest.fixture
def web(monkeypatch):
    """Serve files by name at any address instead of a network; return the dictionary of them."""
    served: dict[str, bytes] = {}

    def get(address, path):
        name = address.rpartition("/")[2]
        if name not in served:
            raise DataError(f"{address}: HTTP Error 404")
        path.write_bytes(served[name])

    monkeypatch.setattr("fedlogit.data.sources.get", get)
    return served


def test_every_data_set_has_sources_with_known_formats():
    for name in DATASETS:
        for source in read_sources(name):
            assert source.format in FORMATS or source.format == "isic"


def test_the_first_source_that_serves_is_recorded(tiny, idx_files, web, mirror, sources, tmp_path):
    web |= idx_files
    path = sources(url("https://one.example/", idx_files) + MIRROR)
    mark = download("tiny", tmp_path / "raw", mirror, path)
    assert (mark.kind, mark.source) == ("url", "https://one.example/")
    assert {p.name for p in (tmp_path / "raw").iterdir()} == {*idx_files, "source.json"}
    assert read_mark(tmp_path / "raw", "tiny") == mark


@pytest.mark.parametrize("damage", ["truncated", "flipped", "labels swapped", "one file absent"])
def test_a_damaged_download_is_passed_over(tiny, idx_files, web, mirror, sources, tmp_path, damage):
    labels, images = "train-labels-idx1-ubyte.gz", "train-images-idx3-ubyte.gz"
    web |= idx_files
    plain = bytearray(gzip.decompress(idx_files[images]))
    if damage == "truncated":
        web[images] = idx_files[images][:-5]
    elif damage == "flipped":
        plain[-1] ^= 1
        web[images] = gzip.compress(plain)
    elif damage == "labels swapped":
        # 0 1 0 1 1 0 becomes 1 0 0 1 1 0: as many of each, and no longer the data set.
        plain = bytearray(gzip.decompress(idx_files[labels]))
        plain[8:10] = plain[9:7:-1]
        web[labels] = gzip.compress(plain)
    else:
        del web[labels]
    path = sources(url("https://one.example/", idx_files) + MIRROR)
    assert download("tiny", tmp_path / "raw", mirror, path).kind == "mirror"
    with pytest.raises(DataError, match=r"no source served tiny. Tried: \(1\) official address"):
        download("tiny", tmp_path / "raw2", None, path)


def test_a_damaged_file_of_the_mirror_is_named(tiny, web, mirror, sources, tmp_path):
    (mirror / "tiny.npz").write_bytes(b"no archive")
    with refused(f"mirror {mirror}: tiny.npz is not a readable .npz archive"):
        download("tiny", tmp_path / "raw", mirror, sources(MIRROR))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean": 0.1}, "mean = 0.1: should be a number for each of 1 channels, of pixels from 0"),
        ({"mean": (0.1, 0.2)}, "mean = (0.1, 0.2): should be a number for each of 1 channels"),
        ({"mean": (25.0,)}, "mean = (25.0,): should be a number for each of 1 channels, of pixels"),
        (
            {"std": (0.0,)},
            "std = (0.0,): should be a number for each of 1 channels, of pixels from",
        ),
        ({"shape": (2, 3)}, "shape = (2, 3): should be (height, width, channels)"),
        ({"kind": "image"}, "kind = 'image': should be 'images' or 'text'"),
        ({"mean": ("0.3",)}, "mean = ('0.3',): should be a number for each of 1 channels, of pix"),
        ({"mean": (True,)}, "mean = (True,): should be a number for each of 1 channels"),
        ({"std": (float("nan"),)}, "std = (nan,): should be a number for each of 1 channels"),
        ({"shape": 4}, "shape = 4: should be (height, width, channels), whole numbers from 1"),
        ({"shape": (2, 3.0, 1)}, "shape = (2, 3.0, 1): should be (height, width, channels)"),
        ({"shape": (2, 0, 1)}, "shape = (2, 0, 1): should be (height, width, channels)"),
        ({"shape": ("2", "3", "1")}, "shape = ('2', '3', '1'): should be (height, width, channel"),
        ({"kind": "text"}, "shape = (2, 3, 1): should be (), which a text has"),
        ({"train": "6"}, "train = '6': should be a whole number from 0"),
        ({"train": 6.0}, "train = 6.0: should be a whole number from 0"),
        ({"train": -6}, "train = -6: should be a whole number from 0"),
        ({"train": 0}, "train = 0: should be a number of images from 1"),
        ({"test": 0}, "test = 0: should be a number of images from 1"),
        ({"classes": "2"}, "classes = '2': should be a whole number from 0"),
        ({"classes": 2.5}, "classes = 2.5: should be a whole number from 0"),
        ({"classes": True}, "classes = True: should be a whole number from 0"),
        ({"classes": 0, "balanced": True}, "balanced = True: should be False where classes = 0"),
        ({"groups": -1}, "groups = -1: should be a whole number from 0"),
        ({"title": None}, "title = None: should be a text in quotes"),
        ({"balanced": "yes"}, "balanced = 'yes': should be True or False"),
        ({"digest": "abc"}, "digest = 'abc': should be the 64 hex digits that prepare writes"),
    ],
)
def test_a_card_that_does_not_fit_itself_is_refused_before_a_download(
    tiny, mirror, sources, tmp_path, monkeypatch, change, said
):
    monkeypatch.setitem(DATASETS, "tiny", dataclasses.replace(tiny, **{"digest": ""} | change))
    with refused(f"card of tiny in fedlogit/data/cards.py: {said}"):
        download("tiny", tmp_path / "raw", mirror, sources(MIRROR))
    assert not (tmp_path / "raw").exists()


CORRECT = "Correct the files, or the card in fedlogit/data/cards.py. "
NETWORK = "Connect to the network"
FOLDER = "ive a folder that holds it with --mirror FOLDER or FEDLOGIT_MIRROR"


@pytest.mark.parametrize(
    ("addresses", "mirrored", "advice"),
    [
        (None, "wrong", CORRECT),
        (None, "damaged", CORRECT),
        (None, "", f"G{FOLDER}. "),
        ("https://one.example/", "wrong", f"{CORRECT}{NETWORK}. "),
        ("https://one.example/", "", f"{NETWORK}, or g{FOLDER}. "),
    ],
)
def test_what_is_advised_could_help(
    tiny, mirror, web, sources, tmp_path, monkeypatch, addresses, mirrored, advice
):
    monkeypatch.setitem(DATASETS, "tiny", dataclasses.replace(tiny, digest="", train=7))
    if mirrored == "damaged":
        (mirror / "tiny.npz").write_bytes(b"no archive")
    path = sources((url(addresses, ["a.gz"]) if addresses else "") + MIRROR)
    with pytest.raises(DataError) as error:
        download("tiny", tmp_path / "raw", mirror if mirrored else None, path)
    end = f". {advice}See docs/add-a-dataset.md and https://example.org"
    assert str(error.value).endswith(end)
    assert str(error.value).count(". ") == end.count(". ") + 1  # nothing is before it but the cause


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "{kind: miror, format: npz}",
            "tiny.0 = {'kind': 'miror', 'format': 'npz'}: 'kind' should",
        ),
        ("{format: npz}", "datasets.tiny.0 = {'format': 'npz'}: key 'kind' is missing"),
    ],
)
def test_a_source_of_no_known_kind_is_refused(tiny, sources, tmp_path, source, said):
    with refused(said):
        download("tiny", tmp_path / "raw", None, sources(f"  - {source}\n"))


def test_a_text_of_a_mirror_is_three_files_in_a_folder_of_its_name(
    tiny, sources, tmp_path, monkeypatch
):
    sizes = {"classes": 0, "shape": (), "train": 0, "test": 0, "mean": (), "std": ()}
    text = dataclasses.replace(tiny, kind="text", digest="", **sizes)
    monkeypatch.setitem(DATASETS, "tiny", text)
    path = sources("  - {kind: mirror, format: text}\n")
    (tmp_path / "mirror/tiny").mkdir(parents=True)
    with refused("mirror has no tiny/train.txt"):
        download("tiny", tmp_path / "raw", tmp_path / "mirror", path)
    for split in ("train", "valid", "test"):
        (tmp_path / f"mirror/tiny/{split}.txt").write_text(f"A {split} split.")
    mark = download("tiny", tmp_path / "raw", tmp_path / "mirror", path)
    assert sorted(mark.files) == ["test.txt", "train.txt", "valid.txt"]


def test_a_stated_file_digest_is_checked(tiny, idx_files, web, sources, tmp_path):
    web |= idx_files
    name = next(iter(idx_files))
    path = sources(url("https://one.example/", idx_files, f", digests: {{{name}: md5:{0:032}}}"))
    with pytest.raises(DataError, match=f"{name} arrived damaged: its md5 is not 000000000000"):
        download("tiny", tmp_path / "raw", None, path)


def test_without_any_source_there_is_one_line_and_nothing_is_left(
    tiny, programs, web, sources, tmp_path
):
    path = sources(url("https://one.example/", ["a.gz"]) + NPM + APT + MIRROR)
    with pytest.raises(DataError) as error:
        download("tiny", tmp_path / "data" / "raw", None, path)
    message = str(error.value)
    assert "\n" not in message
    assert "(1) official address: https://one.example/a.gz: HTTP Error 404" in message
    assert "(2) npm package tiny-data@1.0.0: npm is not installed" in message
    assert "(3) apt package dataset-tiny: apt-get is not installed" in message
    assert "(4) mirror: no folder given (--mirror FOLDER or FEDLOGIT_MIRROR)" in message
    assert "docs/add-a-dataset.md" in message
    assert list((tmp_path / "data").iterdir()) == []


def pack(folder: Path, files):
    """Put files where a client's stand-in will find them."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_an_npm_package_is_kept_as_its_archive(tiny, idx_files, programs, sources, tmp_path):
    package = pack(tmp_path / "package", idx_files)
    programs("npm", f'[ "$1" = pack ] && tar czf tiny-data-1.0.0.tgz -C {tmp_path} {package.name}')
    mark = download("tiny", tmp_path / "raw", None, sources(NPM))
    assert mark.source == "npm package tiny-data@1.0.0"
    assert list(mark.files) == ["tiny-data-1.0.0.tgz"]


def test_apt_updates_its_lists_and_tries_again_once(tiny, idx_files, programs, sources, tmp_path):
    pack(tmp_path / "usr", idx_files)
    updated, log = tmp_path / "updated", tmp_path / "log"
    programs(
        "apt-get",
        f'for word; do :; done\necho "$word" >> {log}\n'
        f'if [ "$word" = update ]; then touch {updated}; exit 0; fi\n'
        f'[ -e {updated} ] || {{ echo "E: Unable to locate package" >&2; exit 100; }}\n'
        "touch dataset-tiny_1_all.deb",
    )
    programs("dpkg-deb", f"tar cf - -C {tmp_path} usr")
    mark = download("tiny", tmp_path / "raw", None, sources(APT))
    assert log.read_text().split() == ["dataset-tiny", "update", "dataset-tiny"]
    assert list(mark.files) == ["dataset-tiny.tar"]


def test_a_failing_client_is_quoted_and_the_next_source_serves(
    tiny, programs, mirror, sources, tmp_path
):
    programs("npm", 'echo "npm error code E404" >&2; exit 1')
    assert download("tiny", tmp_path / "raw", mirror, sources(NPM + MIRROR)).kind == "mirror"
    with pytest.raises(DataError, match=r"npm pack tiny-data@1\.0\.0 failed: npm error code E404"):
        download("tiny", tmp_path / "raw2", None, sources(NPM))


def test_a_client_that_hangs_is_ended(programs, tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "_CLIENT", 0.2)
    programs("npm", "sleep 60")
    with pytest.raises(DataError, match=r"npm took more than 0\.2 s"):
        transport.client(["npm", "pack"], tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutExpired("npm", 1200)])
def test_a_client_that_has_just_ended_hides_no_interruption(programs, tmp_path, monkeypatch, error):
    def interrupted(process, **_options):
        process.wait()  # by now there is nobody left to kill
        raise error

    monkeypatch.setattr(transport.subprocess.Popen, "communicate", interrupted)
    programs("npm", "exit 0")
    wanted = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else DataError
    with pytest.raises(wanted):
        transport.client(["npm", "pack"], tmp_path)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Length", "10" if self.path == "/short" else "4")
        self.end_headers()
        self.wfile.write(b"1234")

    def log_message(self, *arguments):
        pass


def test_get_stores_a_file_and_reports_a_missing_or_incomplete_one(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        transport.get(base + "whole", tmp_path / "whole")
        with pytest.raises(DataError, match=r"/none: Not Found"):
            transport.get(base + "none", tmp_path / "none")
        with pytest.raises(DataError, match=r"/short: .*4 (of 10 )?bytes"):
            transport.get(base + "short", tmp_path / "short")
        monkeypatch.setattr(transport, "LIMIT", 3)
        with pytest.raises(DataError, match=r"/whole: more than 3 bytes arrived"):
            transport.get(base + "whole", tmp_path / "long")
        server.shutdown()
    assert (tmp_path / "whole").read_bytes() == b"1234"
    with pytest.raises(DataError, match=r"127\.0\.0\.1.*: Connection refused"):
        transport.get(base + "whole", tmp_path / "whole")


def test_a_complete_folder_needs_no_source(tiny, mirror, sources, tmp_path):
    raw = tmp_path / "raw"
    mark = download("tiny", raw, mirror, sources(MIRROR))
    assert download("tiny", raw, None, sources(NPM)) == mark


def test_a_mirror_that_has_changed_since_is_not_passed_over(
    tiny, mirror, sources, tmp_path, monkeypatch
):
    raw = tmp_path / "raw"
    mark = download("tiny", raw, mirror, sources(MIRROR))
    assert download("tiny", raw, mirror, sources(MIRROR)) == mark
    whole = (mirror / "tiny.npz").read_bytes()
    (mirror / "tiny.npz").write_bytes(whole + b"x")
    assert download("tiny", raw, mirror, sources(MIRROR)) == mark  # its content is pinned
    monkeypatch.setitem(DATASETS, "tiny", dataclasses.replace(tiny, digest=""))
    with pytest.raises(DataError, match=r"tiny\.npz has changed since it was copied; remove .*raw"):
        download("tiny", raw, mirror, sources(MIRROR))
    assert download("tiny", raw, None, sources(MIRROR)) == mark  # nobody asks for the mirror's
    assert (raw / "tiny.npz").read_bytes() == whole


def test_a_changed_raw_file_is_found_and_fetched_again(tiny, mirror, sources, tmp_path):
    raw = tmp_path / "raw"
    mark = download("tiny", raw, mirror, sources(MIRROR))
    content = bytearray((raw / "tiny.npz").read_bytes())
    content[60] ^= 1
    (raw / "tiny.npz").write_bytes(content)
    with pytest.raises(
        DataError, match=r"tiny\.npz was changed or damaged; run python -m fedlogit download"
    ):
        read_mark(raw, "tiny")
    assert download("tiny", raw, mirror, sources(MIRROR)) == mark


@pytest.fixture
def damaged(tiny, idx_files, web, sources, tmp_path) -> Path:
    """Return a folder that a download made, of which a file was damaged since."""
    raw = tmp_path / "raw"
    web |= idx_files
    download("tiny", raw, None, sources(url("https://one.example/", idx_files)))
    (raw / next(iter(idx_files))).write_bytes(b"damaged")
    return raw


def test_only_what_an_earlier_download_put_there_goes(damaged, mirror, sources):
    (damaged / "notes.txt").write_text("mine")
    download("tiny", damaged, mirror, sources(MIRROR))
    assert {path.name for path in damaged.iterdir()} == {"notes.txt", "tiny.npz", "source.json"}


@pytest.mark.parametrize("name", ["tiny.npz", "thesis.tex", "source.json", "photos/a.jpg"])
def test_a_folder_with_files_of_others_is_refused_and_left(tiny, mirror, sources, tmp_path, name):
    raw = tmp_path / "raw"
    (raw / name).parent.mkdir(parents=True)
    (raw / name).write_text("mine")
    with refused(f"{raw / name.split('/')[0]} was not put there by a download") as error:
        download("tiny", raw, mirror, sources(MIRROR))
    assert f"remove {raw} and run python -m fedlogit download tiny again" in str(error.value)
    assert [path.name for path in tmp_path.glob("raw/**/*") if path.is_file()] == [Path(name).name]
    assert (raw / name).read_text() == "mine"


def test_a_file_that_is_not_listed_is_not_overwritten(damaged, mirror, sources):
    (damaged / "tiny.npz").write_text("mine")
    with refused("tiny.npz was not put there by a download"):
        download("tiny", damaged, mirror, sources(MIRROR))
    assert (damaged / "tiny.npz").read_text() == "mine"


def test_files_of_a_download_that_lost_its_mark_are_taken(tiny, mirror, sources, tmp_path):
    """As Snakemake removes it before it makes it again, and a killed download leaves a folder."""
    raw = tmp_path / "raw"
    mark = download("tiny", raw, mirror, sources(MIRROR))
    (raw / "source.json").unlink()
    assert download("tiny", raw, mirror, sources(MIRROR)) == mark


@pytest.mark.parametrize(
    ("wanted", "files", "there"),
    [
        ("emnist_balanced", ["emnist47.npz"], "emnist47"),
        ("stl10", ["tiny_imagenet32.npz"], "tiny_imagenet32"),
        (
            "wikitext2",
            [f"wikitext2/{s}.txt" for s in ("train", "valid", "test")],
            "wikitext2_tokens",
        ),
    ],
)
def test_a_stand_in_is_named_and_never_taken(tmp_path, web, wanted, files, there):
    for name in files:
        (tmp_path / "mirror" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / name).write_bytes(b"")
    with pytest.raises(DataError, match=rf"The mirror has {there} \(.*\): ask for it by that name"):
        download(wanted, tmp_path / "raw", tmp_path / "mirror")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  - {kind: nmp, format: idx}\n", "nmp"),
        ("  - {kind: npm, format: idx}\n", "package.* is missing"),
        ("  - {kind: npm, format: idx, package: --help}\n", "package"),
        ("  - {kind: mirror, format: npz, files: [../secret]}\n", r"\.\./secret"),
        ("  - {kind: url, format: idx, base: ['file:///etc/'], files: [a]}\n", "file:///etc/"),
        ("  - [\n", "not valid YAML"),
        ("  - 2001-99-99\n", "not valid YAML: month must be in 1..12"),
    ],
)
def test_a_wrong_sources_file_is_one_line(sources, text, message):
    with pytest.raises(FedlogitError, match=message) as error:
        read_sources("tiny", sources(text))
    assert "\n" not in str(error.value)


def test_the_commands_make_digits_without_a_network(tmp_path, capsys):
    raw, out = tmp_path / "raw" / "digits", tmp_path / "prepared"
    assert call("download", ["digits", "--out", str(raw)]) == 0
    assert call("prepare", ["digits", "--raw", str(raw), "--out", str(out)]) == 0
    assert json.loads((raw / "source.json").read_text())["source"] == "scikit-learn"
    with np.load(out / "digits.npz") as arrays:
        assert arrays["x_train"].shape == (1437, 8, 8, 1)
    about = json.loads((out / "digits.json").read_text())
    assert sum(about["class_counts"]["test"]) == 360


def test_a_mistake_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["download.py", "mnits", "--out", str(tmp_path / "raw")])
    with pytest.raises(SystemExit) as ended:
        run_main(partial(call, "download"))
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(
        "error: unknown dataset 'mnits'; did you mean 'mnist'?"
    )
