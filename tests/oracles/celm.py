"""Second version of CELM (CELM §4, Algorithm 1; the text where it differs from the box)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import torch
from oracles.world import World, perceptron, tested, trained


def rounds(
    world: World,
    warm_up: float = 0.05,
    steps: int = 200,
    rate: float = 0.01,
    penalty: float = 1e-3,
    smoothing: float = 0.5,
    local_heads: bool = True,
    debias: bool = True,
    warm_start: bool = True,
    classes_per_round: int | None = None,
) -> Iterator[dict[str, object]]:
    """Yield what is to agree after each round."""
    n, classes, units = len(world.clients), world.classes, world.units[0]
    w_g, c = world.first_server, torch.full((n,), 1 / n, dtype=torch.float64)
    own = [w_g for _ in world.clients]
    head = (units[-2] + 1) * classes  # entries of the last layer
    images, seen = _noise(world, 0), []
    for r in count(1):
        warm = r <= max(1, round(warm_up * world.rounds))
        for i in world.clients:
            kept = warm and local_heads
            start = torch.cat([w_g[:-head], own[i][-head:]]) if kept else w_g
            own[i] = trained(world, i, r, start)
        told: dict[str, object] = {}
        if warm:
            images = images if warm_start else _noise(world, r)
            probed = list(range(classes))
            if classes_per_round:
                probed = world.numbers("probe classes", r).permutation(classes)[:classes_per_round]
            u = torch.full((n + 1, classes), torch.nan, dtype=torch.float64)
            for m, weights in enumerate([w_g, *own]):
                for k in probed:
                    x = _maximise(perceptron(units, weights), images[m][k], k, steps, rate, penalty)
                    images[m][k] = x
                    u[m, k] = perceptron(units, weights)(x)[k].item()
            b = sum(u[0, k] for k in probed) / len(probed) if debias else 0.0
            q = (u[1:] - b).clamp(min=0)
            share = torch.zeros(n, dtype=torch.float64)
            for k in probed:
                share += q[:, k] / (q[:, k].sum() + 1e-12) / len(probed)
            if share.sum() > 0:
                c = smoothing * c + (1 - smoothing) * share / share.sum()
            seen.append(q)
            told = {"memory/celm/images": images, "memory/celm/evidence": torch.stack(seen)}
        w_g = sum(c_i * w_i for c_i, w_i in zip(c.tolist(), own, strict=True))
        told |= {"server": w_g, "contributions": c, "bytes_up": 4 * len(w_g) * n}
        sent = len(w_g) - head * (warm and local_heads)
        yield told | {"bytes_down": 4 * sent * n} | tested(world, perceptron(units, w_g))


def _noise(world: World, again: int) -> list[torch.Tensor]:
    shape = (world.classes, world.x.shape[1])
    sources = [world.noise("probe images", m, again) for m in range(len(world.clients) + 1)]
    return [torch.randn(shape, generator=source) for source in sources]


def _maximise(model, x, k, steps, rate, penalty):
    """Return the image after Adam's steps up s_k(x) - λ‖x‖², written out."""
    m, v = torch.zeros_like(x), torch.zeros_like(x)
    for t in range(1, steps + 1):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(model(x)[k] - penalty * (x**2).sum(), [x])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x + rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
    return x.detach()
