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
from protocol import Exported, Repetitions

# Places where a layer's output is halved by a pool, and the first layer's padding.
POOLS = {"lenet": (0, 1), "tf_cnn": (0, 1)}
PADDING = {"lenet": 2}
CROP = 4  # pixels on each side before a crop


class Network:
    """A workload's model: convolutions of images (n, height, width, channels), then linear layers.

    Weights come as PyTorch has them; JAX takes channels last, on a CPU the faster way.
    """

    def __init__(self, data: Exported) -> None:
        weights, settings = data.weights(), data.settings
        self.pools = POOLS.get(settings["model"], ())
        self.padding = PADDING.get(settings["model"], 0)
        self.augment = settings["augment"]
        self.black = -jnp.asarray(settings["mean"]) / jnp.asarray(settings["std"])
        self.first = []
        channels = 0
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            if w.ndim == 4:
                channels, w = len(w), w.transpose(2, 3, 1, 0)
            else:
                if channels:  # features come out of the images in another order
                    side = round((w.shape[1] / channels) ** 0.5)
                    w = w.reshape(len(w), channels, side, side).transpose(0, 2, 3, 1)
                channels, w = 0, w.reshape(len(w), -1).T
            self.first.append((jnp.asarray(w), jnp.asarray(b)))

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Return images with their channels last; rows of features as they are."""
        return x.transpose(0, 2, 3, 1) if self.first[0][0].ndim == 4 else x

    def train(self, params: list, batch: dict, key: jax.Array) -> jax.Array:
        x = self.cropped(batch["x"], key) if self.augment else batch["x"]
        return self.forward(params, {"x": x})

    def cropped(self, x: jax.Array, key: jax.Array) -> jax.Array:
        """Crop and mirror at random."""
        padded = jnp.pad(x - self.black, ((0, 0), (CROP, CROP), (CROP, CROP), (0, 0))) + self.black
        where, mirror = jax.random.split(key)
        corners = jax.random.randint(where, (len(x), 2), 0, 2 * CROP + 1)
        cut = jax.vmap(
            lambda image, at: jax.lax.dynamic_slice(image, (at[0], at[1], 0), x.shape[1:])
        )(padded, corners)
        return jnp.where(jax.random.bernoulli(mirror, 0.5, (len(x), 1, 1, 1)), cut[:, :, ::-1], cut)

    def forward(self, params: list, batch: dict) -> jax.Array:
        x = batch["x"]
        for i, (w, bias) in enumerate(params):
            if w.ndim == 4:
                around = [(self.padding if i == 0 else 0,) * 2] * 2
                x = jax.lax.conv_general_dilated(
                    x, w, (1, 1), around, dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            else:
                x = x.reshape(len(x), -1) @ w
            x = x + bias
            if i + 1 < len(params):
                x = jax.nn.relu(x)
            if i in self.pools:
                x = jax.lax.reduce_window(
                    x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
                )
        return x


def loss(batch: dict, logits: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch["y"][:, None], 1)
    return -chosen[:, 0]


def main(folder: str) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    network, settings = Network(data), data.settings
    model = fedjax.Model(
        init=lambda _: network.first,
        apply_for_train=network.train,
        apply_for_eval=network.forward,
        train_loss=loss,
        eval_metrics={"accuracy": fedjax.metrics.Accuracy()},
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        getattr(fedjax.optimizers, settings["optimizer"])(settings["rate"]),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=settings["batch"], num_epochs=1),
    )
    samples = {}
    for i in data.clients:
        x, y = data.client(i)
        samples[b"%d" % i] = {"x": network.inputs(x), "y": y.astype(np.int32)}
    clients = fedjax.InMemoryFederatedData(samples)
    predict = jax.jit(network.forward)
    state, key = algorithm.init(network.first), jax.random.PRNGKey(0)
    x, y = data.test()
    parts = range(0, len(y), 500)
    x_test = [jnp.asarray(network.inputs(x[i : i + 500])) for i in parts]
    round_ = 0
    while repetitions.wait():
        round_ += 1
        cohort = [b"%d" % i for i in data.present(round_)]
        key, *keys = jax.random.split(key, len(cohort) + 1)
        taking_part = [
            (c, d, k) for (c, d), k in zip(clients.get_clients(cohort), keys, strict=True)
        ]
        state, _ = algorithm.apply(state, taking_part)
        jax.block_until_ready(state.params)
        repetitions.stop()
        found = [np.asarray(predict(state.params, {"x": part})).argmax(1) for part in x_test]
        repetitions.answer((np.concatenate(found) == y).mean())


if __name__ == "__main__":
    main(sys.argv[1])
