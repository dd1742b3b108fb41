"""Vision transformers: pretrained weights are found, checked, and missed with one clear line."""

import hashlib

import pytest
import torch
from support.networks import network

from fedlogit import models
from fedlogit.errors import FedlogitError
from fedlogit.models import vit

SHAPE = (3, 32, 32)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Make ViT-B/16 small and look for its weights in an empty folder."""
    sizes = {"patch_size": 16, "num_layers": 1, "hidden_dim": 8, "mlp_dim": 8, "num_heads": 2}
    monkeypatch.setattr(vit.VitB16, "_sizes", lambda self: sizes)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDLOGIT_WEIGHTS", str(tmp_path))
    return tmp_path


def publish(folder, monkeypatch, state) -> None:
    torch.save(state, folder / "weights")
    digest = hashlib.sha256((folder / "weights").read_bytes()).hexdigest()
    name = f"vit-{digest[:8]}.pth"
    (folder / "weights").rename(folder / name)
    monkeypatch.setattr(vit, "_WEIGHTS", f"http://127.0.0.1:9/{name}")


def test_pretrained_weights_fill_all_but_the_head(small, monkeypatch):
    other = network("vit_b16(weights='none')", SHAPE, 8, seed=1)
    publish(small, monkeypatch, other.state_dict())
    loaded = network("vit_b16", SHAPE, 8)
    fresh = network("vit_b16(weights='none')", SHAPE, 8)
    for key, value in loaded.state_dict().items():
        source = fresh if key.startswith("heads.") else other
        assert torch.equal(value, source.state_dict()[key]), key


def test_weights_that_are_nowhere(small, monkeypatch):
    monkeypatch.setattr(vit, "_WEIGHTS", "http://127.0.0.1:9/vit-00000000.pth")
    with pytest.raises(FedlogitError, match=r"cannot be fetched.*FEDLOGIT_WEIGHTS"):
        network("vit_b16", SHAPE, 8)


@pytest.mark.parametrize("given", ["", "relative/cache"])
def test_weights_are_looked_for_in_no_cache_that_xdg_ignores(small, monkeypatch, given):
    other = network("vit_b16(weights='none')", SHAPE, 8, seed=1)
    kept = small / "home" / ".cache" / "fedlogit"
    kept.mkdir(parents=True)
    publish(kept, monkeypatch, other.state_dict())
    monkeypatch.delenv("FEDLOGIT_WEIGHTS")
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(small / "home"))
    monkeypatch.chdir(small)
    loaded = network("vit_b16", SHAPE, 8)
    assert torch.equal(loaded.state_dict()["conv_proj.weight"], other.conv_proj.weight)
    assert [path.name for path in small.iterdir()] == ["home"]


def test_weights_that_are_given_need_no_home(small, monkeypatch):
    publish(small, monkeypatch, network("vit_b16(weights='none')", SHAPE, 8).state_dict())

    def nowhere():
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", nowhere)
    network("vit_b16", SHAPE, 8)
    next(small.glob("*.pth")).unlink()
    with pytest.raises(FedlogitError, match=r"HOME is not set.*: set FEDLOGIT_WEIGHTS to a folder"):
        network("vit_b16", SHAPE, 8)


def test_a_cache_that_cannot_be_written_is_one_line(small, monkeypatch):
    (small / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(small / "file"))
    monkeypatch.setattr(vit, "_WEIGHTS", "http://127.0.0.1:9/vit-00000000.pth")
    with pytest.raises(FedlogitError, match=r"cannot be fetched.*Not a directory"):
        network("vit_b16", SHAPE, 8)


def test_damaged_weights_are_refused(small, monkeypatch):
    publish(small, monkeypatch, network("vit_b16(weights='none')", SHAPE, 8).state_dict())
    file = next(small.glob("*.pth"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(FedlogitError, match="damaged"):
        network("vit_b16", SHAPE, 8)


def test_weights_of_another_shape_are_refused(small, monkeypatch):
    publish(small, monkeypatch, {"conv_proj.weight": torch.zeros(1)})
    with pytest.raises(FedlogitError, match="does not fit model vit_b16"):
        network("vit_b16", SHAPE, 8)


def test_images_must_be_whole_patches():
    with pytest.raises(FedlogitError, match="multiple of 4"):
        models.build("vit_tiny", (1, 10, 10), 3, torch.Generator())
