"""What Flower's actors do: load a client's samples once, and train. A module, so that Ray's worker
processes import it, and keep what they loaded (as Flower's quickstart does with a global)."""

from __future__ import annotations

from functools import cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from protocol import Exported
from torch.utils.data import DataLoader, TensorDataset
from torch_models import network, optimizer


@cache
def exported(folder: str) -> Exported:
    return Exported(folder)


@cache
def samples(folder: str, client: int) -> TensorDataset:
    x, y = exported(folder).client(client)
    return TensorDataset(torch.as_tensor(x), torch.as_tensor(y))


def train(folder: str, message: Message, context: Context) -> Message:
    data = exported(folder)
    own = samples(folder, context.node_config["partition-id"])
    model = network(data)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    steps = optimizer(data, model)
    criterion = torch.nn.CrossEntropyLoss()
    for x, y in DataLoader(own, batch_size=data.settings["batch"], shuffle=True):
        steps.zero_grad()
        criterion(model(x), y).backward()
        steps.step()
    content = RecordDict({
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(own)}),
    })  # fmt: skip
    return Message(content=content, reply_to=message)
