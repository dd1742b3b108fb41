"""Second version of FedAvg (McMahan et al. 2017, Algorithm 1; CELM §3.1, eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator

from oracles.world import World, fit, load, perceptron, tested, vector


def rounds(
    world: World,
    weighting: str = "uniform",
    reset_every: str = "run",
    every: int | None = None,
    once: bool = False,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round; the rate is a tenth of itself `every` rounds."""
    w = world.first_server
    models = world.models()
    optimizers = [world.new_optimizer(model) for model in models]
    sizes = [len(p) if weighting == "samples" else 1 for p in world.private]
    c = [size / sum(sizes) for size in sizes]
    rate, r = world.rate, 0
    while True:
        r += 1
        if every and r > 1 and (r - 1) % every == 0 and (rate == world.rate or not once):
            rate = rate / 10
        trained, losses = [], []
        for i, model in enumerate(models):
            load(model, w)
            if reset_every != "run":
                optimizers[i] = world.new_optimizer(model)
            optimizers[i].param_groups[0]["lr"] = rate
            mine = world.private[i]
            batches = world.batches("private", i, r, len(mine))
            losses.append(fit(model, optimizers[i], world.x[mine], world.y[mine], batches))
            trained.append(vector(model))
        w = sum(c_i * w_i for c_i, w_i in zip(c, trained, strict=True))
        each = 4 * len(w) * len(trained)  # float32, both ways
        yield {
            "server": w,
            "contributions": c,
            "bytes_up": each,
            "bytes_down": each,
            "loss_private": sum(losses) / len(losses),
            **tested(world, perceptron(world.units[0], w)),
        }
