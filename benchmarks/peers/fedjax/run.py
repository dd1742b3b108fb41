"""FedJAX: `fedjax.algorithms.fed_avg` on an in-memory data set, with its JIT backend (default)."""

from __future__ import annotations

import sys

import jax

# fedjax 0.0.17 is of 2023; JAX has since moved these names.
jax.tree_map = jax.tree_util.tree_map
jax.tree_leaves = jax.tree_util.tree_leaves
jax.tree_flatten = jax.tree_util.tree_flatten
jax.tree_unflatten = jax.tree_util.tree_unflatten
jax.random.KeyArray = jax.Array

import fedjax
import jax.numpy as jnp
import numpy as np
from protocol import Exported, Turns


def forward(params: list, batch: dict) -> jax.Array:
    x = batch["x"]
    for i, (matrix, bias) in enumerate(params):
        x = x @ matrix + bias
        if i + 1 < len(params):
            x = jax.nn.relu(x)
    return x


def loss(batch: dict, logits: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][:, None], 1)
    return -chosen[:, 0]


def main(folder: str) -> None:
    turns, data = Turns(), Exported(folder)
    weights = data.weights()
    first = [
        (jnp.asarray(w.T), jnp.asarray(b)) for w, b in zip(weights[::2], weights[1::2], strict=True)
    ]
    model = fedjax.Model(
        init=lambda _: first,
        apply_for_train=lambda params, batch, _: forward(params, batch),
        apply_for_eval=forward,
        train_loss=loss,
        eval_metrics={"accuracy": fedjax.metrics.Accuracy()},
    )
    settings = data.settings
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.sgd(settings["rate"]),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=settings["batch"], num_epochs=1),
    )
    samples = {}
    for i in data.clients:
        x, y = data.client(i)
        samples[b"%d" % i] = {"x": x, "y": y.astype(np.int32)}
    clients = fedjax.InMemoryFederatedData(samples)
    predict = jax.jit(forward)
    state, key = algorithm.init(first), jax.random.PRNGKey(0)
    x, y = data.test()
    x_test = {"x": jnp.asarray(x)}
    while turns.wait():
        key, *keys = jax.random.split(key, len(samples) + 1)
        cohort = [(c, d, k) for (c, d), k in zip(clients.clients(), keys, strict=True)]
        state, _ = algorithm.apply(state, cohort)
        jax.block_until_ready(state.params)
        turns.stop()
        found = np.asarray(predict(state.params, x_test)).argmax(1)
        turns.answer((found == y).mean())


if __name__ == "__main__":
    main(sys.argv[1])
