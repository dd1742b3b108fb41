"""The algorithm boxes of the papers, one file each, found by name."""

from fedlogit.methods.base import Method, get, number_of_adversaries
from fedlogit.methods.logit_federation import LogitFederation
from fedlogit.methods.model_federation import ModelFederation
from fedlogit.methods.one_shot import OneShot
from fedlogit.methods.resolution import resolve

__all__ = [
    "LogitFederation",
    "Method",
    "ModelFederation",
    "OneShot",
    "get",
    "number_of_adversaries",
    "resolve",
]
