"""On a GPU: the same bits twice, resumed or not; what a CPU computes, to rounding.

They need PyTorch, pytest and the few libraries of `pyproject.toml`, and are skipped without a GPU:
``python -m pytest tests/engine/test_cuda.py``.
"""

from dataclasses import replace
from functools import partial

import pytest
import torch
from support.every_method import ON_TEXT, VARIANTS, changes
from support.outcomes import outcome, same
from support.pretend_cuda import flags_restored
from support.resuming import played_and_resumed
from support.small import small_spec

from fedlogit import methods
from fedlogit.engine.float32 import configure_float32_matmul
from fedlogit.files import read_json

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
pytestmark = pytest.mark.usefixtures("f32")
CONVOLUTIONS = {"models": ["resnet_light(1)"], "optimizer": {"name": "sgd", "lr": 0.02}}


@pytest.fixture
def f32():
    """As a run sets PyTorch up, which lets cuDNN compute in TF32 otherwise."""
    with flags_restored():
        configure_float32_matmul(torch.device("cuda"))
        yield


@needs_gpu
@pytest.mark.parametrize("call", VARIANTS + ON_TEXT)
def test_every_method_twice_to_the_same_bits(reference, train, tmp_path, call):
    one = train(tmp_path / "one", device="cuda", **changes(call))
    again = train(tmp_path / "again", device="cuda", **changes(call))
    assert same(outcome(one), outcome(again))
    result = read_json(one / "result.json")
    assert result["status"] == "finished"
    assert result["provenance"]["f32_matmul"] == "ieee"
    cpu = read_json(reference(**changes(call)) / "result.json")
    for direction, kinds in cpu["bytes"].items():  # of sparse messages, which rounding may change
        assert result["bytes"][direction] == pytest.approx(kinds, rel=1e-3)
    assert result["final"]["accuracy"] == pytest.approx(cpu["final"]["accuracy"], abs=0.15)


@needs_gpu
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
@pytest.mark.parametrize("kind", [{}, CONVOLUTIONS], ids=["perceptrons", "convolutions"])
def test_one_phase_agrees_with_a_cpu(federation, engine, kind):
    here, there = (federation(device=d, engine=k, **kind) for d, k in _pair(engine))
    here.round = there.round = 1
    for fed in (here, there):
        fed.train_private()
    torch.testing.assert_close(there.vectors().cpu(), here.vectors(), rtol=1e-3, atol=1e-4)
    indices = here.public[:24]
    found = there.logits(indices.to("cuda")).cpu()
    torch.testing.assert_close(found, here.logits(indices), rtol=1e-2, atol=1e-2)


@needs_gpu
@pytest.mark.parametrize("call", VARIANTS + ON_TEXT)
def test_recorded_passes_give_the_bits_of_the_loop(train, tmp_path, call):
    loop = train(tmp_path / "loop", device="cuda", engine="loop", **changes(call))
    graphed = train(tmp_path / "graphed", device="cuda", engine="graphed", **changes(call))
    assert same(outcome(loop), outcome(graphed))


def _pair(engine: str) -> list[tuple[str, str]]:
    return [("cpu", "loop"), ("cuda", engine)]


@needs_gpu
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
def test_a_checkpoint_changes_no_bit(federation, tmp_path, engine):
    given = {"device": "cuda", "engine": engine, **CONVOLUTIONS}
    method = methods.get(small_spec(**CONVOLUTIONS).method)

    whole, resumed = played_and_resumed(partial(federation, **given), method, tmp_path)
    assert torch.equal(whole.vectors(), resumed.vectors())


@needs_gpu
def test_bf16_learns_what_f32_does(train, tmp_path):
    found = [
        read_json(train(tmp_path / p, device="cuda", precision=p) / "result.json")["final"]
        for p in ("f32", "bf16")
    ]
    assert found[1]["accuracy"] == pytest.approx(found[0]["accuracy"], abs=0.1)


@needs_gpu
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
@pytest.mark.parametrize("model", ["resnet18", "tf_cnn", "vit_tiny"])
def test_every_kind_of_layer_twice_to_the_same_bits(digits, federation, model, engine):
    """Overlapping pools, pools without overlap, attention: some fused kernels add as they come."""
    if model.startswith("vit"):
        pytest.importorskip("torchvision")
    data = replace(
        digits, **{k: getattr(digits, k).repeat(4, 1).repeat(4, 2) for k in ("x_train", "x_test")}
    )
    given = {"device": "cuda", "models": [model], "engine": engine, "local": {"steps": 8}}
    one, again = (federation(data=data, **given) for _ in range(2))
    for one_or_other in (one, again):
        one_or_other.round = 1
        one_or_other.train_private()
    assert torch.equal(one.vectors(), again.vectors())


def test_f32_on_a_gpu_is_f32_and_does_not_vary():
    """Only flags are set, which needs no GPU."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    with flags_restored():
        assert configure_float32_matmul(torch.device("cuda")) == "ieee"
        assert (cuda.matmul.fp32_precision, cudnn.conv.fp32_precision) == ("ieee", "ieee")
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
        fused = cuda.flash_sdp_enabled, cuda.mem_efficient_sdp_enabled, cuda.cudnn_sdp_enabled
        assert not any(enabled() for enabled in fused)
        assert cuda.math_sdp_enabled()
