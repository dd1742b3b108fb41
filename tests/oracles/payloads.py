"""How long a message about probes is (TallyTrain §3.2, appendix E)."""

from __future__ import annotations

import math

__all__ = ["message"]


def message(probes: int, classes: int, signal: str, k: int, packed: bool) -> dict[str, int]:
    """Return the bytes of one message by kind: classes, and probabilities in float32."""
    if signal == "probabilities":
        return {"probabilities": 4 * classes * probes}
    named = probes * (k if signal == "top_k" else 1)
    bits = math.ceil(math.log2(classes)) if packed else 8 if classes <= 256 else 16
    votes = {"votes": math.ceil(named * bits / 8)}
    return votes | ({"probabilities": 4 * named} if named > probes else {})
