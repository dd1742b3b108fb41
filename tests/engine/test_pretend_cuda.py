"""Where things lie on a GPU, and how often it is asked or waited for; seen without a GPU."""

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch
from support.calls import script
from support.every_method import CALLS, METHODS, ON_TEXT, VARIANTS, changes, with_absences
from support.outcomes import outcome, same
from support.pretend_cuda import pretend_cuda
from support.resuming import played_and_resumed, whole_and_resumed
from support.rounds import go_on, play
from support.small import SMALL, TEXT, built, small_spec

from fedlogit import methods, models
from fedlogit.engine import graphed, loop
from fedlogit.files import read_json, write_json
from fedlogit.runs.checkpoint import load_checkpoint, save_checkpoint

# To go on from another round is enough: each operation is looked at, which takes longer than to do.
BRIEF = {"rounds": 2, "local": {"epochs": 1}, "server": SMALL["server"] | {"epochs": 2}}
CONVOLUTIONS = {"models": ["resnet_light(1)"], "optimizer": {"name": "sgd", "lr": 0.02}}
# What a run may do besides its method: what it exports, which attack, which topology.
MORE = [
    {"method": "celm(steps=3)", "export": ["evidence", "probes", "shapley", "test_logits"]},
    {"method": "uwa(validation=0.2)", "export": ["aggregation", "logits", "weights"]},
    {"method": "tally_train(warm_up=1)", "export": ["theory"]},
    {"method": "tally_train(warm_up=0, adversaries=1, attack='colluding', topology='ring')"},
    {
        "method": "tally_train(signal='probabilities', warm_up=0, adversaries=1, rule='median',"
        " topology='regular', degree=2)"
    },
    {
        "method": "tally_train(signal='probabilities', warm_up=0, adversaries=1, magnitude=9.0,"
        " rule='trimmed_mean', trim=0.2, attack='confident')",
        "clients": 5,
    },
    {"method": "tally_train(warm_up=0, margin_memory=0.9)", "public": {"size": 60}},
    {"method": "fedavg", "augment": "crop_flip", **CONVOLUTIONS},
    {"method": "average", "optimizer": {"name": "sgd", "lr": 0.02, "reset_every": "phase"}},
]
PADDED = {"share": 0.7, "meta_model": "pad"}
ONE_OF_EACH = [CALLS.get(name, [name])[0] for name in METHODS]
MORE += [with_absences("meta_model(per_class=9)") | {"participation": PADDED}]
# On a text: what is sent of it, and what is averaged.
TEXTS = [
    call
    for call in ON_TEXT
    if call.removeprefix("text: ").startswith(("average", "fedavg", "tally"))
]
EACH = ["lenet", "tf_cnn", "mlp_net", "mlp4w", "mlp", "resnet18", "resnet20_heavy"]
EACH += ["resnet_light(1)", "resnet_light(n=1, batch_stats=True)", "vit_tiny(layers=1)"]


@pytest.mark.parametrize(
    "refused",
    [
        lambda cpu, gpu: cpu + gpu,
        lambda cpu, gpu: gpu.index_select(0, torch.tensor([1])),
        lambda cpu, gpu: cpu[gpu.long()],
        lambda cpu, gpu: torch.cat([cpu, gpu]),
        lambda cpu, gpu: torch.vmap(lambda x: x * cpu)(gpu[None]),
        lambda cpu, gpu: gpu.normal_(generator=torch.Generator()),
        lambda cpu, gpu: torch.randperm(3, device="cuda", generator=torch.Generator()),
        lambda cpu, gpu: gpu.numpy(),
        lambda cpu, gpu: torch.ones(3, device=gpu.device) @ cpu,
    ],
)
def test_what_a_gpu_refuses_is_refused(refused):
    with pretend_cuda():
        cpu, gpu = torch.arange(3.0), torch.arange(3.0).to("cuda")
        with pytest.raises((RuntimeError, TypeError), match=r"cuda:0 and cpu|generator|Tensor.cpu"):
            refused(cpu, gpu)


def test_what_a_gpu_permits_is_computed():
    with pretend_cuda() as cuda:
        gpu = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        (gpu * torch.tensor(3.0) * 2).sum().backward()  # a scalar may come from the CPU
        assert gpu.grad.device == torch.device("cuda", 0)
        assert gpu.grad.cpu().numpy().tolist() == [6, 6]
        found = gpu.detach()[torch.tensor([1])]
        assert cuda.has(found)
        here = torch.zeros(1)
        here.copy_(found)
        assert not cuda.has(here)
        # `tensor` to the device, the gradient back, the index there, the copy back.
        assert cuda.waits == {
            "copy to the device": 1, "copy to the CPU": 1, "index from the CPU": 1, "copy_": 1
        }  # fmt: skip
        cuda.forget()
        gpu.detach().view(1, 2).add(1).sum().item()
        assert cuda.launches == {"aten.add": 1, "aten.sum": 1}
        assert cuda.waits == {"aten._local_scalar_dense": 1}
    assert not torch.zeros(1).is_cuda


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["loop", "graphed"])
@pytest.mark.parametrize("call", VARIANTS + TEXTS)
def test_every_method(reference, train, call, engine):
    """The pretended device computes as the CPU does, so that results are equal to the bit."""
    given = changes(call) | BRIEF
    cpu = reference(**given)
    with pretend_cuda():
        found = train(device="cuda", engine=engine, **given)
    one, other = (read_json(path / "result.json") for path in (cpu, found))
    assert other["provenance"]["f32_matmul"] == "ieee"
    assert other["bytes"] == one["bytes"]
    if call.startswith("celm"):  # probes all models in one pass there, which rounds otherwise
        weights = outcome(cpu)[1], outcome(found)[1]
        torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-3)
    else:
        assert same(outcome(cpu), outcome(found))


@pytest.mark.slow
@pytest.mark.parametrize("given", MORE, ids=lambda given: given["method"].replace(" ", ""))
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
def test_every_export_liar_and_network_of_peers(train, engine, given):
    with pretend_cuda():
        folder = train(device="cuda", engine=engine, **BRIEF | given)
    assert read_json(folder / "result.json")["status"] == "finished"


def test_probes_of_another_data_set(tiles):
    spec, data = tiles
    with pretend_cuda() as cuda:
        method, fed = methods.get(spec.method), built(spec, data, device="cuda")
        fed.round = 1
        fed.ledger.start(1)
        method.round(fed, 1)
        assert all(map(cuda.has, fed.vectors()))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
def test_a_checkpoint_comes_back_to_the_device(federation, tmp_path, engine):
    given = {"device": "cuda", "engine": engine, "local": {"steps": 2}, **CONVOLUTIONS}
    with pretend_cuda() as cuda:
        whole, resumed = whole_and_resumed(partial(federation, **given), tmp_path)
        assert all(map(cuda.has, resumed.vectors()))
        assert torch.equal(whole.vectors().cpu(), resumed.vectors().cpu())


@pytest.mark.slow
@pytest.mark.parametrize("call", ONE_OF_EACH)
def test_what_waits_for_absent_clients_comes_back_to_the_device(federation, tmp_path, call):
    given = with_absences(call, 0.5) | BRIEF
    method, build = methods.get(small_spec(**given).method), partial(federation, device="cuda")
    with pretend_cuda():
        whole, resumed = played_and_resumed(partial(build, **given), method, tmp_path)
        assert whole.server_state.keys() == resumed.server_state.keys()
        for name, value in whole.server_state.items():
            found = resumed.server_state[name].cpu()
            assert torch.allclose(found, value.cpu(), equal_nan=True), name


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fedol(iterations=2)", "fedkt(teachers=2)"])
def test_a_round_that_goes_on_has_its_steps_tensors_where_they_were(federation, tmp_path, call):
    def is_stopped():
        raise KeyboardInterrupt

    given = changes(call) | BRIEF | {"rounds": 1}
    method, build = methods.get(small_spec(**given).method), partial(federation, device="cuda")
    with pretend_cuda():
        whole, first, second = (build(**given) for _ in range(3))
        first.steps.after_step = is_stopped
        with pytest.raises(KeyboardInterrupt):
            play(first, method)
        save_checkpoint(tmp_path, first, [])
        load_checkpoint(tmp_path, second)
        play(whole, method)
        go_on(second, method)
        assert torch.equal(whole.server.vector.cpu(), second.server.vector.cpu())


@pytest.mark.parametrize("call", EACH)
def test_every_model(call):
    if call.startswith("vit"):
        pytest.importorskip("torchvision")
    shape = (1, 28, 28) if call in ("lenet", "mlp_net", "mlp4w") else (3, 32, 32)
    model = models.build(call, shape, 10, torch.Generator().manual_seed(0))
    with pretend_cuda() as cuda:
        model = model.to("cuda")
        model(torch.rand(2, *shape).to("cuda")).logsumexp(-1).sum().backward()
        assert all(cuda.has(p.grad) for p in model.parameters())
        cuda.forget()
        model.eval()(torch.rand(2, *shape, device="cuda"))
        assert not cuda.waits - Counter({"copy to the device": 1})


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["loop", "graphed", "stacked"])
@pytest.mark.parametrize(
    "given",
    [{}, {"augment": "crop_flip", **CONVOLUTIONS}, TEXT],
    ids=["perceptrons", "augmented", "text, gradients made finite"],
)
def test_a_phase_waits_as_often_however_long_it_is(federation, engine, given):
    """A wait a minibatch would leave the device idle for most of a small model's step."""

    def waits(steps: int) -> Counter:
        fed = federation(device="cuda", engine=engine, local={"steps": steps}, **given)
        fed.round = 1
        cuda.forget()
        fed.train_private()
        return cuda.waits.copy()

    with pretend_cuda() as cuda:
        few, many = waits(2), waits(5)
        assert many == few
        assert few["copy to the device"] == 4 * (2 if "augment" in given else 1)
        assert few["tolist"] == (1 if engine == "stacked" else 4)


@pytest.mark.parametrize(
    "phase",
    [
        lambda fed: fed.train_private(),
        lambda fed: fed.train_private(proximal_mu=0.1),
        lambda fed: fed.distil(fed.public, torch.rand(60, 10).softmax(-1).to("cuda")),
    ],
    ids=["private", "proximal", "distillation"],
)
def test_a_stacked_step_launches_as_much_for_more_clients(federation, phase):
    def launches(clients: int, steps: int) -> int:
        given = {"partition": "iid(64)", "clients": clients, "local": {"steps": steps}}
        fed = federation(device="cuda", engine="stacked", **given)
        fed.round = 1
        cuda.forget()
        phase(fed)
        return cuda.launches.total()

    with pretend_cuda() as cuda:
        four, twelve = (partial(launches, clients) for clients in (4, 12))
        assert four(8) - four(4) == twelve(8) - twelve(4)


def test_the_script_finds_the_device(tmp_path, monkeypatch):
    spec = small_spec(method="fedavg")
    write_json(tmp_path / "spec.json", spec.model_dump(mode="json"))
    monkeypatch.chdir(tmp_path)
    arguments = ["--spec", "spec.json", "--out", "run", "--data", "data", "--quiet"]
    with pretend_cuda():
        done = script("train", *arguments, "--device", "cuda")
    assert not done.returncode, done.stderr
    provenance = read_json(Path("run/result.json"))["provenance"]
    assert provenance["device"] == "a GPU that is not there"


def test_what_is_gathered_at_once_is_as_large_as_soft_targets_let_it_be(federation, monkeypatch):
    sizes = []
    with pretend_cuda():
        fed = federation(device="cuda", **TEXT)
        fed.start_round(1)
        points, given = len(fed.public), fed.data.inputs
        monkeypatch.setattr(
            fed.data, "inputs", lambda at, crops: sizes.append(len(at)) or given(at, crops)
        )
        monkeypatch.setattr(loop, "_READY", 2 * 8 * 32 * fed.classes)  # of two minibatches
        fed.distil(fed.public, torch.full((points, 32, fed.classes), 1 / fed.classes).to("cuda"))
        assert max(sizes) == 16
        sizes.clear()
        fed.train_private()
        assert max(sizes) > 16


def test_passes_with_numbers_of_a_round_are_not_kept_for_ever(federation):
    with pretend_cuda():
        fed = federation(device="cuda", engine="graphed")
        uniform = torch.full((len(fed.public), 10), 0.1).to("cuda")
        recorded, record = [], fed.engine._recorder.record
        fed.engine._recorder.record = lambda *given: recorded.append(given[2]) or record(*given)
        for r in range(1, 13):
            fed.start_round(r)
            fed.train_private()
            fed.distil(fed.public, uniform, label_weight=r / 100)
        assert len(fed.engine._passes[fed.clients[0]]) == graphed._KEPT
    # Minibatches of two sizes: of private training, and of the two epochs of round 1's other phase.
    assert recorded.count("client 0") == 4
