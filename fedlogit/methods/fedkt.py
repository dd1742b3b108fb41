"""FedKT: teachers vote, students vote, the server's model learns (Li et al. 2021; FedOL §V-A)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field

from fedlogit.aggregation.hard_votes import consistent_votes, majority
from fedlogit.aggregation.targets import hard
from fedlogit.federation import Federation
from fedlogit.federation.client import Client
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import message
from fedlogit.rng import rng

__all__ = ["FedKT"]


class FedKT(Method):
    """Knowledge transfer in two tiers, in one round.

    A party cuts its data `partitions` times into `teachers` equal parts and trains a teacher on
    each. The teachers of one partitioning label the public set by majority, and a student learns
    from that. The server has all students label the public set, and its model learns from them.

    Attributes:
        partitions: s, students of a party (Li et al. §6: 2).
        teachers: t, teachers of a student (Li et al. §6: 5). 1 makes a student distil one model.
        consistent: A party votes only where its students agree (their §4.2); off, as in their
            public code, every student's vote counts.
    """

    name: ClassVar[str] = "fedkt"
    needs_public: ClassVar[bool] = True
    student: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True

    partitions: Annotated[int, Field(gt=0)] = 2
    teachers: Annotated[int, Field(gt=0)] = 5
    consistent: bool = True

    def round(self, fed: Federation, r: int) -> None:
        """Do the only round."""
        ballots = torch.stack([self._party(fed, client) for client in fed.clients])
        labels = consistent_votes(ballots, fed.classes, consistent=self.consistent)
        known = labels >= 0
        targets = hard(labels, fed.classes)
        fed.log(
            target_share=float(known.double().mean()),
            target_accuracy=fed.accuracy_on_public(targets.distributions, known),
        )
        fed.teach(targets)

    def _party(self, fed: Federation, party: Client) -> torch.Tensor:
        """Return the labels that a party's students give, int64 (students, points)."""
        students = []
        for p in range(self.partitions):
            order = rng(fed.spec.seed, "fedkt/cut", party.index, p).permutation(party.samples)
            parts = torch.as_tensor(order, device=party.private.device).tensor_split(self.teachers)
            teachers = fed.recruits(party, f"teacher/{p}", [party.private[part] for part in parts])
            fed.fit(teachers, [fed.labels(t.private) for t in teachers])
            answers = fed.logits(fed.public, teachers).argmax(-1)
            student = fed.recruits(party, f"student/{p}", [fed.public])
            fed.fit(student, [majority(answers, fed.classes)])
            students += student
        sent = torch.stack([message(s.state()) for s in students])
        fed.ledger.up("model", sent)
        return fed.logits(fed.public, students).argmax(-1)
