"""TinyGPT: nobody sees the future, attention by hand, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from support.networks import network
from support.refusals import refused
from torch import nn

CALL = "tiny_gpt(layers=2, width=16, heads=2, context=12)"


def make(call: str = CALL, length: int = 12, classes: int = 30) -> nn.Module:
    return network(call, (length,), classes).eval()


def tokens(n: int = 3, length: int = 12) -> torch.Tensor:
    return torch.randint(0, 30, (n, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("changed", range(12))
def test_a_later_token_changes_no_earlier_logit(changed):
    model, x = make(), tokens()
    y = x.clone()
    y[:, changed] = (y[:, changed] + 1) % 30
    with torch.no_grad():
        before, after = model(x), model(y)
    assert torch.equal(before[:, :changed], after[:, :changed])
    assert (before[:, changed:] != after[:, changed:]).any(-1).all(), "later ones all see it"


def test_positions_and_samples_are_told_apart():
    model = make()
    same = torch.full((1, 12), 7)
    with torch.no_grad():
        one = model(same)
        assert not torch.allclose(one[0, 0], one[0, 1], atol=1e-4), "the position counts"
        alone, among = model(tokens()[:1]), model(tokens())[:1]
    torch.testing.assert_close(alone, among)


def test_a_shorter_sequence_has_the_logits_of_a_prefix():
    model, x = make(), tokens()
    with torch.no_grad():
        torch.testing.assert_close(model(x[:, :5]), model(x)[:, :5])


def test_one_block_by_hand():
    """Pre-norm, causal attention of each head, GELU, residuals; then a norm and the output."""
    model, x = make("tiny_gpt(layers=1, width=6, heads=2, context=4)", 4), tokens(2, 4)
    (block,) = model.blocks
    with torch.no_grad():
        v = model.tokens.weight[x] + model.positions.weight[:4]
        q, k, u = block.mix(block.norm1(v)).split(6, -1)
        seen = torch.zeros_like(v)
        for n in range(2):
            for t in range(4):
                for h in (slice(0, 3), slice(3, 6)):
                    dots = [math.exp(float(q[n, t, h] @ k[n, s, h]) / 3**0.5) for s in range(t + 1)]
                    for s, dot in enumerate(dots):
                        seen[n, t, h] += dot / sum(dots) * u[n, s, h]
        v = v + block.project(seen)
        inner = block.widen(block.norm2(v))
        v = v + block.narrow(inner * (1 + torch.erf(inner / 2**0.5)) / 2)
        torch.testing.assert_close(model(x), model.output(model.norm(v)), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "shape", "said"),
    [
        (CALL, (13,), "context = 12: sequences have 13 tokens (text.length)"),
        (CALL, (1, 28, 28), "takes sequences of tokens, not images of shape (1, 28, 28)"),
        ("tiny_gpt(width=10, heads=4)", (8,), "width = 10: not a multiple of heads = 4"),
        ("lenet", (64,), "model lenet takes images of at least 12 x 12, not of shape (64,)"),
        ("vit_tiny", (64,), "model vit_tiny takes images"),
    ],
)
def test_what_does_not_fit_gets_one_line(call, shape, said):
    with refused(said):
        network(call, shape)
