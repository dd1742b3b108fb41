"""Second version of the Meta-Model (Who to Trust §3.1.2, eq. 3-4; sizes from deviations.md)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from oracles import average
from oracles.world import World, cross_entropy, perceptron, vector
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier


def rounds(
    world: World, aggregator: str = "mlp", per_class: int = 300
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    return average.rounds(world, aggregate=partial(_learnt, kind=aggregator, per_class=per_class))


def _learnt(world, r, models, logits, kind, per_class):
    """Return what a classifier of all clients' logits, trained on known samples, says."""
    union = torch.cat(list(world.private)).unique()
    source = world.numbers("auxiliary")
    known = []
    for c in range(world.classes):
        members = union[world.y[union] == c].numpy()
        known += source.permutation(members)[:per_class].tolist()
    y = world.y[known]
    with torch.no_grad():
        h = torch.cat([model(world.x[known]) for model in models], 1)
    wanted = torch.cat(list(logits), 1)
    mean, scale = h.mean(0), torch.tensor([s if s > 1e-6 else 1.0 for s in h.std(0)])
    h, wanted = (h - mean) / scale, (wanted - mean) / scale  # of the known samples
    seed = world.address(world.seed, "meta_model", r)
    if kind == "mlp":
        targets = _network(world, h, y, wanted, seed)
    else:
        state = world.address(seed, "trees") % 2**32
        forest = RandomForestClassifier(200, random_state=state)
        trees = forest if kind == "forest" else HistGradientBoostingClassifier(random_state=state)
        trees.fit(h.numpy(), y.numpy())
        targets = torch.zeros(len(wanted), world.classes)
        targets[:, trees.classes_] = torch.tensor(trees.predict_proba(wanted.numpy())).float()
    more = {"bytes_up.auxiliary_logits": 4 * len(known) * world.classes * len(models)}
    return targets, more | ({"bytes_up.auxiliary_labels": len(known)} if r == 1 else {})


def _network(world, h, y, wanted, seed):
    def source(purpose):
        return torch.Generator().manual_seed(world.address(seed, purpose))

    init, shuffle, dropout = source("init"), source("batches"), source("dropout")
    first, units = [], (h.shape[1], 128, world.classes)
    for fan_in, fan_out in pairwise(units):
        for shape in ((fan_out, fan_in), (fan_out,)):
            first.append(((2 * torch.rand(shape, generator=init) - 1) / fan_in**0.5).flatten())
    net = perceptron(units, torch.cat(first))
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    order = torch.randperm(len(h), generator=source("holdout"))
    held, rest = order[: len(h) // 10], order[len(h) // 10 :]
    best, chosen, waited = float("inf"), vector(net), 0
    for _ in range(50):
        for batch in torch.randperm(len(rest), generator=shuffle).split(128):
            kept = torch.rand(len(batch), 128, generator=dropout) >= 0.2
            hidden = F.relu(net[0](h[rest[batch]])) * kept / 0.8
            adam.zero_grad()
            cross_entropy(net[2](hidden), y[rest[batch]]).backward()
            adam.step()
        with torch.no_grad():
            loss = float(cross_entropy(net(h[held]), y[held]))
        best, chosen, waited = (loss, vector(net), 0) if loss < best else (best, chosen, waited + 1)
        if waited == 5:
            break
    with torch.no_grad():
        return perceptron(units, chosen)(wanted).softmax(1)
