"""Methods of one's own that send predictions as any kind of message."""

from __future__ import annotations

from typing import ClassVar

from fedlogit.methods import Method

__all__ = ["SendsPredictions"]


class SendsPredictions(Method):
    """Learns from the mean of soft labels, which are sent as `kind`, after some silent rounds.

    The server sends the mean as `answer`.
    """

    needs_public: ClassVar[bool] = True
    supports_partial_participation: ClassVar[bool] = True
    kind: ClassVar[str]
    answer: ClassVar[str] = "consensus"
    silent_rounds: ClassVar[int] = 0

    @property
    def sends_predictions(self):
        return True

    def round(self, fed, r):
        fed.train_private()
        if r > self.silent_rounds:
            sent = fed.uplink(self.kind, fed.logits(fed.public).softmax(-1))
            fed.distil(fed.public, fed.downlink(self.answer, sent.mean(0)))
