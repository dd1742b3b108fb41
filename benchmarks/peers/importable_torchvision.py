"""Lets torchvision be imported beside a torch for CPUs.

Some indexes have torch for CPUs but torchvision only for CUDA, whose compiled operators then cannot
be loaded, and its import fails. FedLab and fluke import it for data sets that we do not use.
"""

from __future__ import annotations

import sys

import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    for name in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
