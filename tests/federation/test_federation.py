"""The operations: merging, broadcasting, logits, hold-outs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.gradients import after_step
from support.refusals import refused
from support.small import TEXT, built, small_spec

from fedlogit import methods
from fedlogit.aggregation import Targets
from fedlogit.data import UNKNOWN
from fedlogit.engine.client import State
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation import Federation
from fedlogit.federation.client_tasks import (
    batches,
    distillation_tasks,
    model_tasks,
    private_tasks,
    server_tasks,
)
from fedlogit.methods.average import Average
from fedlogit.partition.stratified import stratified
from fedlogit.rng import rng


def test_merge_by_hand(federation):
    fed = federation(clients=3)
    n = fed.clients[0].vector.numel()
    for value, client in zip((1.0, 2.0, 6.0), fed.clients, strict=True):
        empty = torch.empty(0)
        client.load(State(torch.full((n,), value), empty, empty.long()))
    assert torch.allclose(fed.merge().vector, torch.full((n,), 3.0))  # (1 + 2 + 6) / 3
    weighted = fed.merge([0.5, 0.25, 0.25]).vector  # 0.5 + 0.5 + 1.5
    assert torch.allclose(weighted, torch.full((n,), 2.5))


def test_merge_adds_up_in_double_precision(federation):
    fed = federation(clients=3)
    for value, client in zip((1e8, 1.0, -1e8), fed.clients, strict=True):
        with torch.no_grad():
            client.vector.fill_(value)
    assert fed.merge().vector.tolist() == pytest.approx([1 / 3] * fed.clients[0].vector.numel())


def test_merging_one_client_changes_nothing(federation):
    fed = federation(clients=1)
    assert torch.equal(fed.merge().vector, fed.clients[0].vector)


def broken(fed, index):
    """Return the federation with a parameter of one model that is no number."""
    with torch.no_grad():
        fed.clients[index].vector[-1] = torch.nan  # a bias of the last layer
    return fed


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_a_model_that_is_not_finite_has_no_votes_and_no_test_score(federation, engine):
    fed = broken(federation(engine=engine), 2)
    with pytest.raises(Diverged, match="logits of client 2 are not finite"):
        fed.logits(fed.public[:5])
    with pytest.raises(Diverged, match="cross-entropy of client 2 on the test split is nan"):
        fed.evaluate()


def test_a_model_of_an_adversary_is_not_tested_whatever_it_is(federation):
    flips = {"adversaries": {"share": 0.5, "attack": "label_flips"}, "partition": "iid(90)"}
    fed = broken(federation(**flips), 2)
    assert len(fed.evaluate().per_client) == 2


def test_merge_averages_batch_norm_statistics_and_takes_counters_from_client_0(federation):
    fed = federation(clients=2, models=["resnet_light(1)"], public=None, method="local")
    for value, client in zip((1.0, 3.0), fed.clients, strict=True):
        for name, buffer in client.model.named_buffers():
            buffer.fill_(7 * value if name.endswith("num_batches_tracked") else value)
    state = fed.merge()
    assert (state.buffers == 2.0).all()
    assert (fed.merge([0.75, 0.25]).buffers == 1.5).all()
    assert (state.counters == 7).all()
    fed.broadcast(state)
    means = [b for n, b in fed.clients[1].model.named_buffers() if n.endswith("running_mean")]
    assert all((m == 2.0).all() for m in means)


def test_merge_refuses_different_architectures_and_bad_weights(federation):
    mixed = federation(models=["mlp(hidden=[16])", "mlp(hidden=[8])"])
    with pytest.raises(FedlogitError, match=r"\(mlp\(hidden=\[16\]\), mlp\(hidden=\[8\]\)\)"):
        mixed.merge()
    for weights in ([0.5] * 4, [math.nan] * 4):
        with pytest.raises(FedlogitError, match="sum to 1"):
            federation().merge(weights)


def test_what_is_sent_is_counted_and_is_what_the_receiver_reads(federation):
    fed = federation(clients=3)
    fed.ledger.start(1)
    of_clients, of_server = torch.rand(3, 5), torch.rand(7)
    assert torch.equal(fed.uplink("logits", of_clients), of_clients)
    assert torch.equal(fed.downlink("model", of_server), of_server)
    assert torch.equal(fed.exchange("votes", of_clients), of_clients)
    # Four bytes a number: 3 x 5 up, 7 down to 3 clients, 5 from each of 3 clients to 2 others, who
    # read as much as was sent.
    assert fed.ledger.totals() == {
        "up": {"logits": 60, "votes": 120},
        "down": {"model": 84, "votes": 120},
    }


def test_messages_of_a_bit_a_number_and_to_some_clients_only(federation):
    fed = federation(clients=3)
    fed.ledger.start(1)
    fed.uplink("votes", torch.zeros(3, 16), bits=1)
    fed.downlink("reward", torch.zeros(8), bits=64, receivers=1)
    fed.exchange("logits", torch.zeros(3, 2), links=4)
    # 3 x 16 bits; 8 numbers of 8 bytes to one; 2 numbers of 4 bytes along 4 links.
    assert fed.ledger.totals() == {
        "up": {"votes": 6, "logits": 32},
        "down": {"reward": 64, "logits": 32},
    }


@pytest.mark.parametrize("adversaries", [None, {"share": 0.4, "attack": "loud_logits"}])
@pytest.mark.parametrize("kind", ["logits", "auxiliary_logits", "probabilities"])
@pytest.mark.parametrize("rows", [2, 60])
def test_predictions_without_a_row_for_each_client_are_refused(federation, kind, rows, adversaries):
    fed = federation(clients=5, partition="iid(90)", adversaries=adversaries)
    fed.start_round(1)
    said = torch.rand(rows, 10)
    for operation in ("uplink", "exchange"):
        with pytest.raises(FedlogitError) as error:
            getattr(fed, operation)(kind, said)
        assert str(error.value) == (
            f"method average: fed.{operation} of {kind!r} got shape ({rows}, 10), {rows} rows of 5"
            " clients; give a row for each client that is present (what is selected of"
            " fed.claimed(…) goes under another kind)"
        )
    with refused(f"fed.claimed of 'selected' got shape ({rows}, 10), {rows} rows of 5 clients"):
        fed.claimed(said, "selected")
    assert fed.ledger.totals() == {"up": {}, "down": {}}
    fed.uplink("selected", said)


def test_rows_are_those_of_the_clients_that_are_present(federation):
    fed = federation(participation={"schedule": [{"clients": [0], "since": 2}]})
    fed.start_round(1)
    fed.uplink("logits", torch.rand(3, 10))
    with refused("4 rows of 3 clients"):
        fed.uplink("logits", torch.rand(4, 10))


@pytest.mark.parametrize("kind", ["logits", "votes"])
def test_a_message_that_is_no_tensor_is_refused(federation, kind):
    fed = federation()
    fed.start_round(1)
    for operation in (fed.uplink, fed.exchange):
        with refused(f"of {kind!r} got a list; give a tensor, a row for each of the 4 clients"):
            operation(kind, [[1.0]] * 4)
        with refused(f"of {kind!r} got shape (), no rows of 4 clients; give a row for each"):
            operation(kind, torch.tensor(1.0))
    with refused("method average: fed.claimed of 'mine' got a ndarray; give a tensor, a row for"):
        fed.claimed(np.zeros((4, 10)), "mine")
    with refused(f"method average: fed.downlink of {kind!r} got a ndarray; give a tensor, what"):
        fed.downlink(kind, np.zeros((60, 10)))


@pytest.mark.parametrize("kind", ["logits", "auxiliary_logits", "probabilities"])
def test_predictions_for_each_client_are_not_sent_to_all_of_them(federation, kind):
    fed = federation(clients=3)
    fed.start_round(1)
    own = torch.rand(3, 60, 10)
    with pytest.raises(FedlogitError) as error:
        fed.downlink(kind, own)
    assert str(error.value) == (
        f"method average: fed.downlink of {kind!r} got shape (3, 60, 10), and predictions have 2"
        " axes; send each client its own with receivers=1, or say receivers=3 if each gets all of"
        " it"
    )
    fed.downlink(kind, own[0])
    assert [fed.downlink(kind, row, receivers=1) is row for row in own] == [True] * 3
    fed.downlink(kind, own, receivers=3)
    assert fed.ledger.totals()["down"] == {kind: 60 * 10 * 4 * (3 + 3 + 9)}
    fed.downlink("models", torch.rand(3, 4, 5, 6))


def test_a_text_s_predictions_have_an_axis_of_positions(federation):
    fed = federation(**TEXT)
    fed.start_round(1)
    fed.downlink("logits", torch.rand(40, 32, 10))
    with refused("(4, 40, 32, 10), and predictions have 3 axes"):
        fed.downlink("logits", torch.rand(4, 40, 32, 10))


def test_backbone_broadcast_leaves_each_head_alone(federation):
    fed = federation(clients=2)
    heads = [c.vector[c.head_mask()].clone() for c in fed.clients]
    state = fed.merge()
    fed.broadcast(state, backbone_only=True)
    for client, head in zip(fed.clients, heads, strict=True):
        mask = client.head_mask()
        assert torch.equal(client.vector[mask], head)
        assert torch.equal(client.vector[~mask], state.vector[~mask])
    assert mask.sum() == 16 * 10 + 10


def test_head_rows_are_a_class_each_with_its_bias_last(federation):
    client = federation().clients[0]
    rows, last = client.head_rows(client.vector), client.model.fc2
    assert rows.shape == (10, 17)
    assert torch.equal(rows[:, :16], last.weight)
    assert torch.equal(rows[:, 16], last.bias)


def test_parameters_are_views_of_the_vector(federation):
    client = federation().clients[0]
    with torch.no_grad():
        client.vector.fill_(0.25)
    assert all((p == 0.25).all() for p in client.model.parameters())


def test_clients_start_differently_unless_told_otherwise(federation):
    apart, same = federation(), federation(same_init=True)
    assert not torch.equal(apart.clients[0].vector, apart.clients[1].vector)
    assert torch.equal(same.clients[0].vector, same.clients[1].vector)


def test_a_servers_own_model_has_first_weights_of_its_own_and_a_global_one_those_of_client_0(
    federation,
):
    server = {"model": "mlp(hidden=[16])", "epochs": 1}
    taught, averaged = federation(method="feddf", server=server), federation(method="fedavg")
    assert taught.server.architecture == taught.clients[0].architecture
    assert not torch.equal(taught.server.vector, taught.clients[0].vector)
    assert torch.equal(averaged.server.vector, averaged.clients[0].vector)


def test_new_models_have_their_owners_architecture_and_first_weights_of_their_own(federation):
    fed = federation(models=["mlp(hidden=[16])", "mlp(hidden=[8])"])
    owner = fed.clients[3]
    one, two = fed.new_models(owner, "teacher/0", [owner.private[:5], owner.private[5:]])
    other, *_ = fed.new_models(owner, "teacher/1", [owner.private])
    assert one.architecture == two.architecture == other.architecture == owner.architecture
    assert [len(model.private) for model in (one, two, other)] == [5, 85, 90]
    weights = {tuple(model.vector.tolist()) for model in (owner, one, two, other)}
    assert len(weights) == 4


@pytest.mark.parametrize("role", ["private", "distil", "teach", "server"])
def test_new_models_share_no_random_numbers_with_a_phase(federation, role):
    fed = federation()
    with refused(f"method average: fed.new_models: role = {role!r} is the name of a phase; give"):
        fed.new_models(fed.clients[0], role, [fed.public])


def test_orders_and_crops_differ_by_round_client_and_phase(federation):
    fed = federation(method="feddf", augment="crop_flip")

    def order(round_: int, client: int, phase: str = "private") -> tuple[int, ...]:
        fed.round = round_
        first, *_ = batches(fed.context, phase, fed.clients[client], 90)
        return tuple(first.tolist())

    places = [(1, 0), (2, 0), (1, 1), (1, 0, "distil")]
    assert len({order(*place) for place in places}) == len(places)
    assert order(1, 0) == order(1, 0)

    def crops(round_: int, client: int) -> tuple[float, ...]:
        fed.round = round_
        task = private_tasks(fed.context, fed.clients, fed.public[:0], None, 0.0)[client]
        return tuple(torch.rand(3, generator=task.augment).tolist())

    assert len({crops(*place) for place in places[:3]}) == 3

    students = [
        *fed.new_models(fed.clients[0], "student/0", [fed.public, fed.public]),
        *fed.new_models(fed.clients[0], "student/1", [fed.public]),
    ]
    labels = [torch.zeros(len(fed.public), dtype=torch.int64)] * len(students)

    def orders(tasks) -> list[tuple[int, ...]]:
        return [tuple(torch.cat(task.batches).tolist()) for task in tasks]

    fed.round = 1
    soft = torch.full((len(fed.public), 10), 0.1)
    found = [
        *orders(model_tasks(fed.context, students, labels)),
        *orders(model_tasks(fed.context, students, labels, 2)),
        *orders(distillation_tasks(fed.context, [fed.clients[0], *students], fed.public, soft, 0.0,
                                   once=False)),
    ]  # fmt: skip
    assert len(set(found)) == len(found) == 3 + 3 + 4
    cropped = [
        tuple(torch.rand(3, generator=task.augment).tolist())
        for part in (1, 2)
        for task in model_tasks(fed.context, students, labels, part)
    ]
    assert len(set(cropped)) == len(cropped)

    def lesson(round_: int, part: int) -> tuple[int, ...]:
        fed.round = round_
        targets = Targets(torch.full((60, 10), 0.1), torch.ones(60))
        (task,) = server_tasks(fed.context, fed.server, fed.public, targets, part)
        return tuple(torch.cat(task.batches).tolist())

    assert len({lesson(1, 1), lesson(2, 1), lesson(1, 2)}) == 3


def test_rates_decay_from_the_first_one_and_not_from_the_last(federation):
    schedule = {"every": 1, "gamma": 0.5}
    optimizer = {"name": "sgd", "lr": 0.1}
    fed, rates = federation(schedule=schedule, optimizer=optimizer, local={"steps": 1}), []
    for r in (1, 2, 3):
        fed.start_round(r)
        fed.train_private()
        rates.append(fed.clients[0].optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.05, 0.025])


def test_models_are_dealt_in_turn(federation):
    fed = federation(models=["mlp(hidden=[16])", "mlp(hidden=[8])"])
    sizes = [c.vector.numel() for c in fed.clients]
    assert sizes == [64 * 16 + 16 + 170, 64 * 8 + 8 + 90] * 2
    assert fed.logits(fed.public).shape == (4, 60, 10)


def test_holdout_is_stratified_and_not_trained_on(federation):
    fed = federation(method="uwa(validation=0.2)")
    for client in fed.clients:
        assert len(client.validation) == 18  # 20 % of 90
        assert client.samples == 72
        assert not np.intersect1d(client.private, client.validation).size
        assert fed.labels(client.validation).bincount().tolist().count(6) == 3  # 3 classes x 6


def test_a_holdout_is_rounded_and_each_client_draws_its_own(federation):
    fed = federation(method="uwa(validation=0.2)", partition="k_classes(3, private_size=93)")
    for client in fed.clients:
        own = np.union1d(client.private, client.validation)
        assert (len(own), len(client.validation)) == (93, 19)  # 20 % of 93 are 18.6
        draw = rng(fed.spec.seed, "holdout", client.index)
        chosen = stratified(fed.labels(torch.as_tensor(own)).numpy(), 19, draw)
        assert client.validation.tolist() == own[chosen].tolist()


def test_the_test_subset_has_each_class_by_its_share_and_is_drawn_by_the_seed(digits):
    there = np.bincount(digits.y_test, minlength=10)
    subsets = []
    for seed in (0, 1):
        data = built(small_spec(test_size=100, seed=seed), digits).data
        found = np.bincount(data.test_labels, minlength=10)
        assert (np.abs(found - 100 * there / there.sum()) < 1).all()
        subsets.append(data.x_test)
    assert not torch.equal(*subsets)


def test_private_public_and_validation_are_disjoint(federation):
    fed = federation(method="uwa")
    public = set(fed.public.tolist())
    for client in fed.clients:
        assert not public & set(client.private.tolist())
        assert not public & set(client.validation.tolist())


def test_the_server_learns_each_target_by_its_weight(federation):
    sgd = {"name": "sgd", "lr": 0.1}
    server = {"model": "mlp(hidden=[16])", "epochs": 1, "batch": 60, "optimizer": sgd}
    fed = federation(method="feddf", rounds=1, server=server)
    fed.start_round(1)
    said = torch.randn(60, 10, generator=torch.Generator().manual_seed(0)).softmax(1)
    weights = torch.arange(60) % 4 / 2
    logs = fed.server.model(fed.data.inputs(fed.public)).log_softmax(1)
    # The mean is over the 45 samples with a weight.
    loss = -(weights[:, None] * said * logs).sum() / 45
    wanted = after_step(fed.server, loss)
    fed.distil_server(Targets(said, weights))
    assert torch.allclose(fed.server.vector, wanted, atol=1e-6)


def test_the_server_learns_distributions_alone_as_targets_of_weight_1(federation):
    said = torch.randn(60, 10, generator=torch.Generator().manual_seed(0)).softmax(1)
    learned = []
    for targets in (said, Targets(said, torch.ones(60))):
        fed = federation(method="feddf", rounds=1)
        fed.start_round(1)
        fed.distil_server(targets)
        learned.append(fed.server.vector.detach().clone())
    assert torch.equal(*learned)


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (torch.randn(60, 10), "method feddf: fed.distil_server got targets that are negative, and"),
        (
            Targets(torch.randn(60, 10), torch.ones(60)),
            "method feddf: fed.distil_server got targets that are negative, and no distributions",
        ),
        (
            torch.ones(4, 60, 10) / 10,
            "got targets of shape (4, 60, 10); give a tensor of shape (60",
        ),
        (torch.ones(60, 10) / 9, "feddf returned no distribution for public sample 0"),
        (None, "method feddf: fed.distil_server got a NoneType; give a tensor, of shape (60, 10)"),
        (
            Targets(torch.ones(60, 10) / 10, torch.ones(59)),
            "method feddf: fed.distil_server got weights of shape (59,); give (60,)",
        ),
    ],
)
def test_what_the_server_cannot_learn_is_refused(federation, targets, said):
    fed = federation(method="feddf", rounds=1)
    fed.start_round(1)
    with refused(said):
        fed.distil_server(targets)


@pytest.mark.parametrize("method", ["average", "fedavg"])
def test_a_server_without_a_model_of_its_own_learns_nothing(federation, method):
    fed = federation(method=method)
    with refused(
        f"method {method}: fed.distil_server needs server_model = True, and a server in the spec"
    ):
        fed.distil_server(torch.ones(60, 10) / 10)


def test_a_server_without_a_model_predicts_nothing(federation):
    fed = federation(method="fedavg")
    assert fed.server_logits(fed.public).shape == (60, 10)
    fed = federation(method="average")
    with refused("method average: fed.server_logits needs server_model = True, and a server in"):
        fed.server_logits(fed.public)


def test_logits_do_not_depend_on_workers(federation):
    one, two = federation(workers=1), federation(workers=2)
    for fed in (one, two):
        fed.round = 1
        fed.train_private()
    assert torch.equal(one.logits(one.public), two.logits(two.public))


@pytest.mark.parametrize(("reset_every", "steps"), [("run", 12), ("round", 4), ("phase", 2)])
def test_how_long_an_optimizer_remembers(federation, reset_every, steps):
    """Adam counts its steps: a round has 60 = 45 + 15 public and 90 = 45 + 45 private samples."""
    optimizer = {"name": "adam", "lr": 0.003, "reset_every": reset_every}
    fed = federation(optimizer=optimizer, local={"epochs": 1}, batch=45)
    targets = torch.full((60, 10), 0.1)
    for r in (1, 2, 3):
        fed.start_round(r)
        fed.distil(fed.public, targets)
        fed.train_private()
    client = fed.clients[0]
    assert int(client.optimizer.state[client.vector]["step"]) == steps


def test_the_second_time_in_a_round_has_minibatches_and_crops_of_its_own(federation):
    """The same time twice is the same; the second is not the first, in order and in crops."""
    targets = torch.full((60, 10), 0.1)

    def after(part: int) -> tuple[torch.Tensor, torch.Tensor]:
        new = federation(augment="crop_flip")
        new.start_round(1)
        new.train_private(part=part)
        trained = new.clients[0].vector.detach().clone()
        new.distil(new.public, targets, part=part)
        return trained, new.clients[0].vector.detach().clone()

    first, again, second = after(1), after(1), after(2)
    assert all(map(torch.equal, first, again))
    assert not any(map(torch.equal, first, second))
    fed = federation(augment="crop_flip")
    tasks = [private_tasks(fed.context, fed.clients, fed.public[:0], None, 0.0, p) for p in (1, 2)]
    crops = [[drawn.initial_seed() for task in each if (drawn := task.augment)] for each in tasks]
    assert len({*crops[0], *crops[1]}) == 2 * len(fed.clients)


def test_a_server_that_is_distilled_as_a_learner_is_trained_by_its_own_engine(federation):
    """Its seconds are not the clients', and native code that trains SGD takes no Adam from it."""
    adam = {"name": "adam", "lr": 0.003}
    server = {"model": "mlp(hidden=[16])", "epochs": 1, "optimizer": adam}
    trained = []
    for engine in ("loop", "auto"):
        fed = federation(
            engine=engine, method="feddf", rounds=1, server=server,
            optimizer={"name": "sgd", "lr": 0.1},
        )  # fmt: skip
        fed.start_round(1)
        fed.distil(fed.public, torch.full((60, 10), 0.1), learners=[fed.server])
        assert "seconds_clients" not in fed.take_log()
        trained.append(fed.server.vector.detach().clone())
        assert fed.server.optimizer.state
    torch.testing.assert_close(*trained, atol=1e-6, rtol=0)


def test_more_probes_than_public_samples_are_refused(federation):
    fed = federation()
    with pytest.raises(FedlogitError, match=r"61 public samples are asked for.*there are 60"):
        fed.probes(61)


def test_a_sample_that_is_held_out_is_not_trained_on_where_samples_repeat(federation):
    fed = federation(method="cffl", partition="fr_repeat(keep=5)", public=None)
    rider = fed.clients[-1]
    assert len(rider.validation.unique()) == len(rider.validation) == 1  # 10 % of 5, at least 1
    assert len(rider.private.unique()) <= 4
    assert rider.samples > 20
    for client in fed.clients:
        assert not np.intersect1d(client.private, client.validation).size


def test_a_last_pass_of_one_sample_joins_the_one_before(federation):
    fed = federation(public={"size": 61}, models=["resnet_light(n=1, batch_stats=True)"])
    fed.data.batch = 20
    assert fed.logits(fed.public).shape == (4, 61, 10)
    n = len(fed.data.x_test)
    fed.data.batch = n - 1
    assert fed._predictions._test_parts() == [slice(0, n)]


def test_what_is_exported_stays_as_it_was_and_the_last_value_counts(federation):
    fed, weights = federation(), torch.zeros(2)
    fed.export("aggregation", weights=weights)
    weights.add_(1)
    assert fed.exported["aggregation"]["weights"].tolist() == [0.0, 0.0]
    fed.export("aggregation", weights=weights)
    assert fed.exported["aggregation"]["weights"].tolist() == [1.0, 1.0]


def test_only_some_clients_take_part_for_a_while_and_all_do_after_an_error(federation):
    fed = federation()
    before = [client.vector.detach().clone() for client in fed.clients]
    fed.start_round(1)
    with fed.restricted_to(fed.clients[1:3]):
        fed.train_private()
    with pytest.raises(Diverged), fed.restricted_to(fed.clients[1:3]):
        fed.logits(broken(fed, 1).public)
    moved = [not torch.equal(c.vector, was) for c, was in zip(fed.clients, before, strict=True)]
    assert moved == [False, True, True, False]
    assert fed.clients == fed.all_clients


def test_rows_of_those_present_are_a_view_where_all_are(federation):
    fed = federation()
    rows = torch.arange(len(fed.all_clients) * 2).view(-1, 2)
    assert fed.gather_rows(rows) is rows
    with fed.restricted_to(fed.all_clients[2:]):
        assert torch.equal(fed.gather_rows(rows), rows[2:])
        assert torch.equal(fed.scatter_rows(fed.gather_rows(rows), absent=-1)[2:], rows[2:])


@pytest.fixture
def on_public(federation):
    """Return a function from labels to a federation whose public samples have them."""

    def make(labels: torch.Tensor) -> Federation:
        fed = federation(method="average")
        fed.public = torch.arange(len(labels))
        fed.data = SimpleNamespace(labels=labels)
        return fed

    return make


def test_the_accuracy_of_targets_is_of_known_labels_and_of_what_is_asked_for(on_public):
    says = torch.eye(3)[torch.tensor([0, 1, 2, 0])]  # classes 0, 1, 2 and 0
    labels = torch.tensor([0, 2, UNKNOWN, 0])
    asked = torch.tensor([True, True, True, False])
    fed = on_public(labels)
    assert fed.accuracy_on_public(says) == 2 / 3  # to the last bit of a double
    assert fed.accuracy_on_public(says, asked) == 1 / 2
    assert np.isnan(fed.accuracy_on_public(says, labels == UNKNOWN))


def test_the_accuracy_of_targets_of_texts_is_asked_for_by_text(on_public):
    says = torch.eye(3)[torch.tensor([[0, 1], [2, 0], [1, 1]])]  # three texts of two positions
    fed = on_public(torch.tensor([[0, 1], [2, UNKNOWN], [0, 0]]))
    assert fed.accuracy_on_public(says) == 3 / 5
    assert fed.accuracy_on_public(says, torch.tensor([False, True, True])) == 1 / 3


def test_distillation_on_no_samples_is_refused(federation):
    fed = federation(method="local", public=None)
    fed.start_round(1)
    with pytest.raises(FedlogitError, match=r"method local distils on no samples; give public"):
        fed.distil(fed.public, torch.empty(0, 10))


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (
            torch.randn(60, 10),
            "got targets that are negative, and no distributions; take a softmax",
        ),
        (torch.ones(50, 10) / 10, "got targets of shape (50, 10); give a tensor of shape (60, 10)"),
        (torch.ones(10, 60) / 10, "got targets of shape (10, 60); give a tensor of shape (60, 10)"),
        (
            torch.ones(2, 60, 10) / 10,
            "got targets of shape (2, 60, 10); give a tensor of shape (60, 10) for all, or"
            " (4, 60, 10) for each of 4 learners",
        ),
        (torch.ones(60).long(), "got targets of shape (60,); give a tensor of shape (60, 10)"),
        ([[0.1] * 10] * 60, "got a list; give a tensor, of shape (60, 10) for all, or"),
    ],
)
def test_targets_that_are_no_distributions_on_the_samples_are_refused(federation, targets, said):
    fed = federation()
    fed.start_round(1)
    with refused(f"method average: fed.distil {said}"):
        fed.distil(fed.public, targets)


def test_targets_may_weigh_samples_and_be_each_learner_s_own(federation):
    fed = federation()
    fed.start_round(1)
    fed.distil(fed.public, torch.rand(4, 60, 10))
    fed.distil(fed.public, torch.zeros(60, 10))
    fed.distil(fed.public[:3], torch.rand(2, 3, 10), learners=fed.clients[:2])
    with pytest.raises(Diverged):
        fed.distil(fed.public, torch.full((60, 10), math.nan))


def test_targets_of_a_text_have_a_distribution_at_each_position(federation):
    fed = federation(**TEXT)
    fed.start_round(1)
    with refused("of shape (40, 300); give a tensor of shape (40, 32, 300) for all, or (4, 40, 32"):
        fed.distil(fed.public, torch.rand(40, 300))
    fed.distil(fed.public[:2], torch.rand(2, 32, 300), once=True)


def test_contributions_are_a_number_for_each_client(federation):
    fed = federation()
    fed.contribute(torch.full((4,), 0.25))
    assert fed.take_log()["contribution_3"] == 0.25
    with refused("contribute() needs a number for each of the 4 clients"):
        fed.contribute([0.5, 0.5, 0.0])


@pytest.mark.parametrize("call", ["average", "fedavg"])
def test_personalized_accuracy_weighs_test_samples_by_a_clients_own_classes(federation, call):
    fed = federation(method=call, partition="dir_client(0.5)")
    fed.evaluate()
    labels = fed.data.test_labels
    models = [fed.server] * 4 if call == "fedavg" else fed.all_clients
    each = []
    for client, model in zip(fed.all_clients, models, strict=True):
        right = fed._predictions.test_logits([model])[0].argmax(1) == labels
        private = fed.labels(client.private).tolist()
        each.append(np.mean([right[labels == c].double().mean() for c in private]))
    assert fed.take_log()["personalized_accuracy"] == pytest.approx(np.mean(each))


class GivesNaN(Average):
    """Has a mistake in its aggregate."""

    def aggregate(self, fed, logits):
        return super().aggregate(fed, logits) * math.nan


@pytest.mark.parametrize(
    ("method", "size", "error", "said"),
    [
        ("average", 3e38, Diverged, r"logits of up to 3e\+38 are too large to aggregate"),
        (f"{__name__}:GivesNaN", 3.0, FedlogitError, "returned numbers that are negative or not"),
    ],
)
def test_an_aggregate_diverges_only_of_logits_that_are_too_large(
    federation, monkeypatch, method, size, error, said
):
    fed = federation(method=method)
    fed.start_round(1)
    monkeypatch.setattr(fed, "logits", lambda indices: torch.full((4, len(indices), 10), size))
    with pytest.raises(error, match=said):
        methods.get(fed.spec.method).round(fed, 1)
