"""CELM: contribution estimation from logit maximisation (CELM §4, Algorithm 1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field

from fedlogit import data
from fedlogit.aggregation.contribution import (
    evidence,
    instantaneous_scores,
    moving_average,
    redistributed,
    shares_of_present,
)
from fedlogit.aggregation.logit_maximisation import (
    Ascent,
    maximise_logits,
    maximise_stacked,
    models_at_once,
    probed_together,
)
from fedlogit.errors import Diverged, FedlogitError
from fedlogit.federation import Client, Federation, State, explain_single_sample
from fedlogit.methods.model_federation import ModelFederation, model_message
from fedlogit.spec import RunSpec

__all__ = ["CELM"]

_PHASE = "logit maximisation"


class CELM(ModelFederation):
    """During warm-up the server probes every model; afterwards contributions are frozen.

    Absent clients: those present are probed, and divide anew what they had of c together; c_i, the
    evidence and the images of the absent wait. A model counts by its c_i among those present. Who
    first comes after warm-up keeps c_i = 1/N.

    Models that normalise by the statistics of their batch, which the paper has nowhere, normalise
    the images of all classes probed together: there, evidence of a class depends on the others.

    Attributes:
        warm_up: T_w / T, the share of rounds with probing (§5: 5 %), rounded to whole rounds, a
            half to the even number. At least one round; 1 probes always.
        steps: L, Adam steps of a probe (§5: 200).
        rate: η, their learning rate (§5: 0.01). Few large steps do nearly as well (App. C.2).
        penalty: λ of the squared norm of an image (§5: 0.001). 0 leaves pixels unbounded.
        smoothing: β of the contributions' moving average (§5: 0.5). 0 forgets.
        local_heads: Clients keep their own last layer during warm-up (§4.2), from which "class-
            discriminative signal" is read; off, they get the global one.
        debias: Subtract the global model's mean logit (eq. 8-9); off, evidence is max(0, u).
        warm_start: Start from the last round's final images (§5), else from new noise each round.
        classes_per_round: Probe so many classes, drawn anew each round, instead of all of them:
            §7's remedy for many classes. None probes all.
    """

    exports: ClassVar[frozenset[str]] = frozenset({"evidence", "probes"})
    min_clients: ClassVar[int] = 2

    warm_up: Annotated[float, Field(gt=0, le=1)] = 0.05
    steps: Annotated[int, Field(gt=0, le=100_000)] = 200
    rate: Annotated[float, Field(gt=0, le=10)] = 0.01
    penalty: Annotated[float, Field(ge=0)] = 1e-3
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.5
    local_heads: bool = True
    debias: bool = True
    warm_start: bool = True
    classes_per_round: Annotated[int, Field(gt=0)] | None = None

    def check(self, spec: RunSpec) -> None:
        """Refuse a number of classes that is all of them: that is another hash of the same run."""
        classes = data.card(spec.dataset).classes
        if self.classes_per_round is not None and self.classes_per_round >= classes:
            raise FedlogitError(
                f"method {self.name}: classes_per_round = {self.classes_per_round}: dataset"
                f" {spec.dataset} has {classes} classes, so all are probed; leave it out, or give"
                " less"
            )

    def init(self, fed: Federation) -> None:
        """Start from equal contributions c_i = 1/N (line 13)."""
        super().init(fed)
        n = len(fed.clients)
        fed.server_state["celm/contributions"] = torch.full((n,), 1 / n, dtype=torch.float64)
        fed.server_state["celm/evidence"] = torch.empty(0, n, fed.classes, dtype=torch.float64)
        fed.server_state["celm/history"] = torch.empty(0, n, dtype=torch.float64)

    def horizon(self, fed: Federation) -> int:
        """Return T_w in rounds."""
        return max(1, round(self.warm_up * fed.spec.rounds))

    def broadcast(self, fed: Federation, model: State) -> None:
        """Send the backbone during warm-up, all of the model afterwards (lines 16-20)."""
        if not (self.local_heads and fed.round <= self.horizon(fed)):
            super().broadcast(fed, model)
            return
        head = fed.clients[0].head_mask()
        fed.downlink("model", model_message(model, left_out=head))
        fed.broadcast(model, backbone_only=True)

    def contributions(self, fed: Federation) -> list[float]:
        """Return c among those present, estimated anew during warm-up (lines 22-37)."""
        of_all = fed.server_state["celm/contributions"].cpu()
        c = shares_of_present(of_all, fed.present_indices)
        if fed.round <= self.horizon(fed):
            q = self._evidence(fed).cpu()
            probed = ~q.isnan().any(0)
            instantaneous = instantaneous_scores(q[:, probed])
            if instantaneous is not None:  # without any evidence, c stays as it is
                c = moving_average(c, instantaneous, self.smoothing)
                c = c / c.sum()  # only rounding can have moved the sum off 1
            total = q[:, probed].sum(0)
            fed.log(evidence=float(total.sum()), classes_without_evidence=float((total == 0).sum()))
            of_all = redistributed(of_all, fed.present_indices, c)
            fed.server_state["celm/contributions"] = of_all
            self._remember(fed, fed.scatter_rows(q, torch.nan), of_all)
        return c.tolist()

    def _evidence(self, fed: Federation) -> torch.Tensor:
        """Return q, float64 (clients, classes), NaN for classes not probed (lines 23-30)."""
        assert fed.server is not None
        start = time.perf_counter()
        classes = self._classes(fed)
        images, places = self._images(fed), self._places(fed)
        # w_g^(t-1), all of it: the server has averaged the heads even where it did not send them.
        models = [fed.server, *fed.clients]
        ascent = Ascent(self.steps, self.rate, self.penalty, fed.leave_if_cancelled)
        logits, final = _maximised(fed, models, images[:, classes], classes, ascent)
        images[:, classes] = final
        self._kept_images(fed)[places] = images
        logits = logits.double()
        if not torch.isfinite(logits).all():
            bad = int((~torch.isfinite(logits)).any(1).nonzero()[0])
            raise Diverged(f"logits of {models[bad].label} in logit maximisation are not finite")
        reference = logits[0] if self.debias else torch.zeros_like(logits[0])
        q = logits.new_full((len(fed.clients), fed.classes), torch.nan)
        q[:, classes] = evidence(logits[1:], reference)
        fed.log(seconds_probe=time.perf_counter() - start)
        return q

    def _classes(self, fed: Federation) -> torch.Tensor:
        count = min(self.classes_per_round or fed.classes, fed.classes)
        chosen = torch.arange(fed.classes)
        if count < fed.classes:
            drawn = fed.rng("probe classes", fed.round).permutation(fed.classes)
            chosen = torch.as_tensor(drawn[:count]).sort().values
        return chosen.to(fed.data.device)

    def _images(self, fed: Federation) -> torch.Tensor:
        """Return X_g and X_i, (1 + clients, classes, channels, height, width) (line 14)."""
        if self.warm_start:
            return self._kept_images(fed)[self._places(fed)]
        return _noise(fed, fed.clients, fed.round)

    def _kept_images(self, fed: Federation) -> torch.Tensor:
        """Return X_g and X_i of all clients that exist, which are noise until they are probed."""
        if "celm/images" not in fed.server_state:
            draw = 0 if self.warm_start else fed.round
            fed.server_state["celm/images"] = _noise(fed, fed.all_clients, draw)
        return fed.server_state["celm/images"]

    def _places(self, fed: Federation) -> torch.Tensor:
        """Return where X_g and X_i of those present are among those of all that exist."""
        return torch.cat([torch.tensor([0]), 1 + fed.present_indices])

    def _remember(self, fed: Federation, q: torch.Tensor, c: torch.Tensor) -> None:
        """Keep Q and c of every warm-up round."""
        state = fed.server_state
        state["celm/evidence"] = torch.cat([state["celm/evidence"].cpu(), q[None]])
        state["celm/history"] = torch.cat([state["celm/history"].cpu(), c[None]])

    def finish(self, fed: Federation) -> None:
        """Export the evidence and the images."""
        state = fed.server_state
        fed.export("evidence", evidence=state["celm/evidence"], contributions=state["celm/history"])
        fed.export("probes", images=state["celm/images"])


def _noise(fed: Federation, clients: Sequence[Client], draw: int) -> torch.Tensor:
    """Return images of noise for the global model and for clients, of draw number `draw`."""
    shape = (fed.classes, *fed.data.shape)
    owners = [0, *(client.index + 1 for client in clients)]
    noise = [torch.randn(shape, generator=fed.torch_rng("probe images", i, draw)) for i in owners]
    return torch.stack(noise).to(fed.data.device)


def _maximised(
    fed: Federation,
    models: Sequence[Client],
    images: torch.Tensor,
    classes: torch.Tensor,
    ascent: Ascent,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return LMProbe's logits (models, k) and images (models, k, …) from start images.

    Models of one architecture are probed together on a GPU, and perceptrons everywhere; others one
    a thread.
    """
    networks = [model.model for model in models]
    alike = len({model.architecture for model in models}) == 1
    if alike and probed_together(networks[0], fed.data.device.type):
        with explain_single_sample(models[0], _PHASE):
            at_once = models_at_once(networks[0], images[0])
            return maximise_stacked(networks, images, classes, ascent, at_once)
    start = dict(zip(map(id, models), images, strict=True))

    def probe(model: Client) -> tuple[torch.Tensor, torch.Tensor]:
        with explain_single_sample(model, _PHASE):
            return maximise_logits(model.model, start[id(model)], classes, ascent)

    found = fed.for_each(models, probe)
    logits, final = zip(*found, strict=True)
    return torch.stack(logits), torch.stack(final)
