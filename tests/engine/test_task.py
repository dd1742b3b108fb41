"""Minibatches, schedules, optimizers and losses by hand."""

import pytest
import torch
from support.refusals import refused
from support.small import small_spec
from torch import nn

from fedlogit.data import UNKNOWN
from fedlogit.engine.client import make_optimizer
from fedlogit.engine.task import ClientTask, minibatches
from fedlogit.engine.transforms import draw_crops
from fedlogit.spec import LocalTraining, Optimizer, Schedule


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_epochs_go_through_everything_once_each():
    batches = minibatches(10, 4, generator(), epochs=2, steps=None)
    assert [len(b) for b in batches] == [4, 4, 2, 4, 4, 2]
    assert torch.cat(batches[:3]).sort().values.tolist() == list(range(10))
    assert torch.cat(batches[3:]).sort().values.tolist() == list(range(10))
    assert not torch.equal(torch.cat(batches[:3]), torch.cat(batches[3:]))


def test_steps_cut_as_many_passes_as_needed():
    batches = minibatches(5, 2, generator(), epochs=None, steps=4)
    assert [len(b) for b in batches] == [2, 3, 2, 3]
    assert [len(b) for b in minibatches(5, 2, generator(), epochs=None, steps=3)] == [2, 3, 2]


def test_a_last_batch_of_one_joins_the_one_before():
    assert [len(b) for b in minibatches(9, 4, generator(), epochs=1, steps=None)] == [4, 5]
    assert [len(b) for b in minibatches(3, 1, generator(), epochs=1, steps=None)] == [1, 1, 1]
    assert [len(b) for b in minibatches(1, 4, generator(), epochs=1, steps=None)] == [1]


def test_crops_are_drawn_in_the_order_of_minibatches(federation):
    """All at once, so that a GPU gets them in one copy; the numbers are those of one at a time."""
    client = federation().clients[0]
    batches = minibatches(9, 4, generator(), epochs=2, steps=None)
    crops = torch.Generator().manual_seed(7)
    task = ClientTask(client, client.private[:9], batches, augment=crops)
    one = torch.Generator().manual_seed(7)
    for found, batch in zip(task.crops(torch.device("cpu")), batches, strict=True):
        assert torch.equal(found, draw_crops(len(batch), one))


def test_minibatches_need_a_unit():
    with pytest.raises(ValueError, match="epochs or steps"):
        minibatches(5, 2, generator(), epochs=None, steps=None)


def test_step_schedule_by_hand():
    # "Decays by 0.1 after 50 rounds": rounds 1-50 at 1, 51-100 at 0.1, 101-150 at 0.01.
    schedule = Schedule(every=50)
    assert [schedule.factor(r) for r in (1, 50)] == [1.0, 1.0]
    assert [schedule.factor(r) for r in (51, 100)] == pytest.approx([0.1, 0.1])
    assert schedule.factor(101) == pytest.approx(0.01)
    assert Schedule(every=50, once=True).factor(151) == pytest.approx(0.1)
    assert Schedule().factor(10_000) == 1.0


def test_first_round_may_have_its_own_epochs():
    local = LocalTraining(epochs=1, first_epochs=10)
    assert [local.epochs_in(r) for r in (1, 2, 50)] == [10, 1, 1]
    assert LocalTraining(steps=5).epochs_in(1) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"optimizer": {"name": "adam", "lr": 0.1, "momentum": 0.9}},
            "momentum = 0.9 has no effect with name = 'adam'; leave it out (or at 0.0)",
        ),
        ({"optimizer": {"name": "adamw", "lr": 0.1, "momentum": 0.5}}, "momentum = 0.5"),
        ({"optimizer": {"name": "sgd", "lr": 0.1, "beta1": 0.8}}, "beta1 = 0.8 has no effect"),
        ({"optimizer": {"name": "sgd", "lr": 0.1, "beta2": 0.9}}, "beta2 = 0.9 has no effect"),
        ({"optimizer": {"name": "sgd", "lr": 0.1, "eps": 1e-4}}, "eps = 0.0001 has no effect"),
        ({"schedule": {"once": True}}, "once = True has no effect without every; leave it out"),
        ({"schedule": {"gamma": 0.5}}, "gamma = 0.5 has no effect without every"),
        (
            {
                "server": {
                    "model": "mlp_net",
                    "epochs": 1,
                    "optimizer": {"name": "sgd", "lr": 0.1, "reset_every": "phase"},
                }
            },
            "reset_every = 'phase' has no effect on a server's model, whose optimizer is new each"
            " time it is trained; leave it out (or at 'run')",
        ),
        (
            {"method": "celm(classes_per_round=10)"},
            "classes_per_round = 10: dataset digits has 10 classes, so all are probed; leave it"
            " out, or give less",
        ),
        (
            {"method": "feddf_fusion(server_steps=0, warm_up=1, target='probabilities')"},
            "target = 'probabilities': has no effect with server_steps = 0; leave it out",
        ),
        (
            {"method": "feddf_fusion(server_steps=0, warm_up=1, server_optimizer='new')"},
            "server_optimizer = 'new': has no effect with server_steps = 0",
        ),
        (
            {"method": "feddf_fusion(server_steps=0, warm_up=1, probes_per_round=8)"},
            "probes_per_round = 8: has no effect with server_steps = 0",
        ),
    ],
)
def test_a_setting_without_effect_is_refused(changes, said):
    """It would change a run's hash and none of its numbers."""
    with refused(said):
        small_spec(**changes)


def test_settings_at_their_default_may_be_written_out():
    written = {"name": "sgd", "lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    schedule = {"every": None, "gamma": 0.1, "once": False}
    plain = small_spec(optimizer={"name": "sgd", "lr": 0.1})
    assert small_spec(optimizer=written, schedule=schedule).digest() == plain.digest()


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_optimizers_are_pytorchs_own_to_the_bit(name):
    """Ours leave the compiler out; steps, states and what a checkpoint restores stay the same."""
    settings = Optimizer(name=name, lr=0.01, weight_decay=0.1, momentum=0.5 * (name == "sgd"))
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    optimizer = make_optimizer([ours], settings)
    if name == "sgd":
        plain = torch.optim.SGD([theirs], 0.01, momentum=0.5, weight_decay=0.1, fused=True)
    else:
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        plain = kind([theirs], 0.01, weight_decay=0.1, fused=True)
    for step in range(4):
        if step == 2:  # as a resumed run does
            state = optimizer.state_dict()
            optimizer = make_optimizer([ours], settings)
            optimizer.load_state_dict(state)
        for vector in (ours, theirs):
            vector.grad = torch.sin(vector.detach() * 7 + step)
        optimizer.step()
        plain.step()
    assert torch.equal(ours, theirs)


def test_a_minibatch_without_a_known_label_has_the_soft_term_alone(federation):
    client = federation().clients[0]
    soft, unknown = torch.tensor([[0.5, 0.5]]), torch.tensor([UNKNOWN])
    task = ClientTask(client, client.private, [], label_weight=0.3, partly_known=True)
    gradients = []
    for targets in ({"labels": unknown, "soft": soft}, {"soft": soft}):
        logits = torch.tensor([[1.0, 0.0]], requires_grad=True)
        task.loss(logits, targets).backward()
        gradients.append(logits.grad)
    assert torch.equal(*gradients)
    assert gradients[0].isfinite().all()
