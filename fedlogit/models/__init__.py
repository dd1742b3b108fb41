"""The papers' architectures, found by name: ``lenet``, ``tf_cnn``, ``resnet18(stem='cifar')``."""

from fedlogit.models.base import ModelConfig, build, get

__all__ = ["ModelConfig", "build", "get"]
