"""FedKT: teachers vote, students vote, the server's model learns (Li et al. 2021; FedOL §V-A)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field

from fedlogit.aggregation.hard_votes import consistent_votes, majority
from fedlogit.aggregation.targets import one_hot_targets
from fedlogit.errors import FedlogitError
from fedlogit.federation import Client, Federation
from fedlogit.methods.base import Method
from fedlogit.methods.model_federation import model_message

__all__ = ["FedKT"]


class FedKT(Method):
    """Knowledge transfer in two tiers, in one round: nothing comes back that a second could use.

    A party cuts its data `partitions` times into `teachers` equal parts and trains a teacher on
    each. The teachers of one partitioning label the public set by majority, and a student learns
    from that. The server has all students label the public set, and its model learns from them.

    A run of several rounds repeats this with the same cuts and first weights of teachers and
    students; the server's model alone goes on, from what it was.

    Absent clients: only parties that are present train teachers and students, and vote.

    Attributes:
        partitions: s, students of a party (Li et al. §6: 2).
        teachers: t, teachers of a student (Li et al. §6: 5). 1 makes a student distil one model.
        consistent: A party votes only where its students agree (their §4.2); off, as in their
            public code, every student's vote counts.
    """

    name: ClassVar[str] = "fedkt"
    needs_public: ClassVar[bool] = True
    server_model: ClassVar[bool] = True
    fixed_messages: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    supports_external_public: ClassVar[bool] = True

    partitions: Annotated[int, Field(gt=0)] = 2
    teachers: Annotated[int, Field(gt=0)] = 5
    consistent: bool = True

    def round(self, fed: Federation, r: int) -> None:
        """Do the round."""
        parties = [fed.once(f"party/{c.index}", partial(self._party, fed, c)) for c in fed.clients]
        votes, teachers, students = (
            torch.stack([party[key] for party in parties])
            for key in ("votes", "loss_teachers", "loss_students")
        )
        fed.log(loss_teachers=float(np.mean(teachers.numpy())))
        fed.log(loss_students=float(np.mean(students.numpy())))
        labels = consistent_votes(votes, fed.classes, consistent=self.consistent)
        known = labels >= 0
        targets = one_hot_targets(labels, fed.classes)
        fed.log(target_share=float(known.double().mean()))
        if fed.public_known:
            fed.log(target_accuracy=fed.accuracy_on_public(targets.distributions, known))
        fed.distil_server(targets)

    def _party(self, fed: Federation, party: Client) -> dict[str, torch.Tensor]:
        """Return the labels that a party's students give, ``votes``, int64 (students, points).

        With them come the mean losses of all its teachers, ``loss_teachers``, and of its students,
        ``loss_students``, float64 (models,).
        """
        if party.samples < self.teachers:
            raise FedlogitError(
                f"method {self.name}: client {party.index} has {party.samples} samples, fewer than"
                f" teachers = {self.teachers}"
            )
        students: list[Client] = []
        teachers_losses: list[float] = []
        students_losses: list[float] = []
        for p in range(self.partitions):
            order = fed.rng("fedkt/cut", party.index, p).permutation(party.samples)
            parts = torch.as_tensor(order, device=party.private.device).tensor_split(self.teachers)
            own = [party.private[part] for part in parts]
            teachers = fed.new_models(party, f"teacher/{p}", own)
            labels = [fed.labels(t.private) for t in teachers]
            teachers_losses += fed.train_models(teachers, labels)
            answers = fed.logits(fed.public, teachers).argmax(-1)
            student = fed.new_models(party, f"student/{p}", [fed.public])
            students_losses += fed.train_models(student, [majority(answers, fed.classes)])
            students += student
        fed.uplink("model", torch.stack([model_message(s.state()) for s in students]))
        votes = fed.logits(fed.public, students).argmax(-1)
        losses = {"loss_teachers": teachers_losses, "loss_students": students_losses}
        return {"votes": votes} | {
            key: torch.tensor(values, dtype=torch.float64) for key, values in losses.items()
        }
