"""The papers' architectures, found by name: ``lenet``, ``tf_cnn``, ``resnet18(stem='cifar')``."""

from fedlogit.models.base import ImageShape, ModelConfig, Shape, build, get

__all__ = ["ImageShape", "ModelConfig", "Shape", "build", "get"]
