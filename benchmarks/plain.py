"""The plain PyTorch loops as implementations (`peers/protocol.py`): plain.py FOLDER WAY.

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
from protocol import Exported, Repetitions


def main(folder: str, way: str) -> None:
    repetitions, data = Repetitions(), Exported(folder)
    kind = KINDS[data.settings["kind"]](data, way)
    round_ = 0
    while repetitions.wait():
        round_ += 1
        kind.run(round_)
        repetitions.stop()
        repetitions.answer(kind.accuracy())


if __name__ == "__main__":
    main(*sys.argv[1:])
