"""UWA: weights from each client's density of its own logits (Who to Trust §3.1.3)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from fedlogit.aggregation.flow import fit_flow
from fedlogit.aggregation.uwa import (
    Density,
    by_class,
    density_weights,
    fit_classes,
    fit_em,
    fit_full,
    fit_kernel,
    largest_variance,
    no_density,
    weighted_logits,
)
from fedlogit.data import UNKNOWN
from fedlogit.federation import Federation
from fedlogit.methods.logit_federation import LogitFederation
from fedlogit.rng import derive, torch_rng

__all__ = ["UWA"]


class UWA(LogitFederation):
    """Uncertainty-weighted averaging.

    The mixtures are fitted anew every round, after private training, because the logits they
    describe have changed.

    Absent clients: those present fit mixtures, and w_i(x) is theirs, summing to 1 over them.

    Attributes:
        validation: Share of each private set held out to fit on; the paper has "a local
            validation set" of unstated size. The held-out images are not trained on.
        variance_floor: Smallest variance of a component, in squared logits. Towards 0 the
            weights become one-hot; very large ones make UWA a simple average.
        fit: ``supervised`` fits component k to the samples of class k (eq. 5 indexes components
            by class); ``em`` fits them without labels. Not the paper's, to see whether logits
            are diagonal Gaussians: ``full_covariance`` and ``ledoit_wolf`` (shrunk) instead of
            variances, ``kernel``, a kernel density, and ``flow``, a normalising flow.
        constant_below: A client has no density, and so no weight, if none of its logits has a
            larger variance on its held-out samples, in squared logits; not the paper's. At 0, the
            default, a client whose logits are the same everywhere, as those of a ReLU network
            whose units have died, gets nearly all weight.
    """

    exports: ClassVar[frozenset[str]] = frozenset({"aggregation"})
    added: ClassVar[frozenset[str]] = frozenset({"constant_below"})

    validation: Annotated[float, Field(gt=0, lt=1)] = 0.1
    variance_floor: Annotated[float, Field(gt=0)] = 1e-3
    fit: Literal["supervised", "em", "full_covariance", "ledoit_wolf", "kernel", "flow"] = (
        "supervised"
    )
    constant_below: Annotated[float, Field(ge=0)] = 0.0

    @property
    def holdout(self) -> float:
        """Share of private samples for fitting."""
        return self.validation

    def aggregate(self, fed: Federation, logits: torch.Tensor) -> torch.Tensor:
        """Return softmax(Σ_i w_i(x) f_i(x)), eq. 5-7."""
        mixtures = self._mixtures(fed)
        densities = torch.stack([m.log_density(z) for m, z in zip(mixtures, logits, strict=True)])
        fed.uplink("densities", densities, bits=32)
        weights = density_weights(densities)
        self._record(fed, densities, weights)
        return weighted_logits(logits, weights).softmax(1)

    def _mixtures(self, fed: Federation) -> list[Density]:
        held_out = [client.validation for client in fed.clients]
        own = fed.own_logits(held_out)
        labels = [fed.labels(points) for points in held_out]
        owners = [torch.full_like(y, c.index) for y, c in zip(labels, fed.clients, strict=True)]
        fed.export(
            "aggregation",
            held_out_logits=torch.cat(own),
            held_out_labels=torch.cat(labels),
            held_out_clients=torch.cat(owners),
        )
        return [
            self._fitted(fed, client.index, z, y)
            for client, z, y in zip(fed.clients, own, labels, strict=True)
        ]

    def _fitted(self, fed: Federation, client: int, z: torch.Tensor, y: torch.Tensor) -> Density:
        if self.constant_below and largest_variance(z) <= self.constant_below:
            return no_density(z)
        if self.fit == "em":
            seed = derive(fed.spec.seed, "em", client, fed.round) % 2**32
            return fit_em(z, len(y.unique()), self.variance_floor, seed)
        groups = by_class(z, y)
        if not groups:
            return no_density(z)
        if self.fit == "supervised":
            return fit_classes(groups, self.variance_floor)
        if self.fit == "kernel":
            return fit_kernel(groups, self.variance_floor)
        if self.fit == "flow":
            draws = torch_rng(fed.spec.seed, "flow", client, fed.round)
            return fit_flow(groups, self.variance_floor, draws)
        return fit_full(groups, self.variance_floor, shrunk=self.fit == "ledoit_wolf")

    def _record(self, fed: Federation, densities: torch.Tensor, weights: torch.Tensor) -> None:
        """Log and export the weights; true labels are used here only, for diagnostics."""
        labels, of_all = fed.labels(fed.public), fed.scatter_rows(weights.float(), absent=0)
        fed.export("aggregation", weights=of_all, points=fed.public, labels=labels)
        top = weights.max(0).values
        fed.log(
            weight_max=float(top.mean()),
            weight_over_99=float((top > 0.99).double().mean()),
            with_density=float(densities.isfinite().any(1).double().mean()),
        )
        known = labels != UNKNOWN
        present = fed.present_indices.to(labels.device)
        holds = torch.as_tensor(fed.class_mask, device=labels.device)[present]
        held = holds[:, labels[known]]
        own = densities[:, known][held]
        if own.isfinite().any():
            fed.log(
                weight_on_holders=float((weights[:, known] * held).sum(0).mean()),
                log_likelihood=float(own[own.isfinite()].mean()),
            )
