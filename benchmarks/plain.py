"""The plain PyTorch loops as contestants (`peers/protocol.py`): plain.py FOLDER WAY.

- ``transforms``: a torchvision data set, PIL transforms, a DataLoader (the usual script);
- ``dataloader``: normalised tensors in a TensorDataset and a DataLoader;
- ``tensors``: a loop that slices normalised tensors by index.

One client after the other, all cores inside an operation, as PyTorch comes. Minibatches come in
the order of fedlogit's, so that accuracies must agree where nothing else is drawn.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE / "peers")]

from plain_rounds import KINDS
from protocol import Exported, Turns


def main(folder: str, way: str) -> None:
    turns, data = Turns(), Exported(folder)
    kind = KINDS[data.settings["kind"]](data, way)
    round_ = 0
    while turns.wait():
        round_ += 1
        kind.turn(round_)
        turns.stop()
        turns.answer(kind.accuracy())


if __name__ == "__main__":
    main(*sys.argv[1:])
