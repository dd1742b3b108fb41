"""A CUDA device that is not there: its tensors compute on the CPU, but know where they would lie.

What goes wrong first on a GPU is where things lie: an index on the CPU, a CPU generator, an array
read before it was fetched. PyTorch notices that only if there is a GPU. Here every storage that a
program moves to ``cuda`` is noted, so is what is computed from noted ones, and what PyTorch refuses
on a GPU is refused. Kernels that would be launched are counted, and so are the moments in which
the CPU would wait for the device: what makes small models slow there.

It cannot show what a GPU's own kernels compute, nor how fast: ``test_cuda.py`` does, on a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fedlogit.engine import graphed
from fedlogit.engine.float32 import configure_float32_matmul

__all__ = ["PretendCuda", "flags_restored", "pretend_cuda"]

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
_aten = torch.ops.aten
_INDEXED = {_aten.index, _aten.index_put_, _aten.index_put}  # PyTorch moves an index itself
# The shape of what they return depends on values, or they return a value: the CPU has to wait.
_WAITS = {
    _aten._local_scalar_dense,
    _aten.equal,
    _aten.masked_select,
    _aten.nonzero,
    _aten._unique2,
    _aten.unique_consecutive,
    _aten.repeat_interleave,
}
_FREE = {
    _aten._local_scalar_dense,
    _aten.detach,
    _aten._unsafe_view,
    _aten.empty_like,
    _aten.new_empty,
    _aten.lift_fresh,
}
_FROM_DATA = (torch.tensor, torch.as_tensor)
_NOT_ARRAYS = (torch.Tensor.numpy, torch.Tensor.__array__)
_PLACE = {
    torch.Tensor.device.__get__: lambda there: CUDA if there else CPU,
    torch.Tensor.is_cuda.__get__: bool,
    torch.Tensor.is_cpu.__get__: lambda there: not there,
    torch.Tensor.get_device: lambda there: 0 if there else -1,
}


class PretendCuda:
    """What lies on the device, and what was asked of it.

    Attributes:
        launches: How often each operation of PyTorch would launch kernels; views launch none.
        waits: How often the CPU would wait: for a value, or for a copy between the two sides.
    """

    def __init__(self) -> None:
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.within = False  # whether a function of PyTorch runs on tensors of the device
        self._storages: dict[int, StorageWeakRef] = {}

    def forget(self) -> None:
        """Count from 0."""
        self.launches.clear()
        self.waits.clear()

    def has(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor lies on the device."""
        return _storage(tensor)._cdata in self._storages

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """Note that a tensor lies on the device."""
        storage = _storage(tensor)
        # A weak reference keeps the address from being given to another storage.
        self._storages[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Note that a tensor lies on the CPU."""
        self._storages.pop(_storage(tensor)._cdata, None)
        return tensor

    def moved(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Return a tensor on a device: itself, or a copy."""
        there = device.type == "cuda"
        if self.has(tensor) == there:
            return tensor
        self.waits["copy to the device" if there else "copy to the CPU"] += 1
        return self.put(tensor.clone()) if there else self.fetch(tensor.clone())


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage:
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.untyped_storage()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield tensors from nested arguments; PyTorch's own `tree_leaves` takes five times as long."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


class _Names(TorchFunctionMode):
    """Understands the device that a program names, which PyTorch would try to start."""

    def __init__(self, cuda: PretendCuda) -> None:
        self.cuda = cuda

    def __torch_function__(
        self, func: Callable, types: Any, args: Sequence = (), kwargs: Mapping | None = None
    ) -> Any:
        cuda, given = self.cuda, dict(kwargs or {})
        if func in _PLACE:
            return _PLACE[func](cuda.has(args[0]))
        if func is torch.Tensor.to:
            return self._to(*args, **given)
        if func in (torch.Tensor.cpu, torch.Tensor.cuda):
            return cuda.moved(args[0], CPU if func is torch.Tensor.cpu else CUDA)
        if func in _NOT_ARRAYS and cuda.has(args[0]):
            raise TypeError(
                f"{func.__name__} of a tensor that lies on the device: use Tensor.cpu()"
            )
        if func is torch.Tensor.tolist and cuda.has(args[0]):
            cuda.waits["tolist"] += 1
        device = given.get("device")
        if device is None:
            return self._within(func, args, given)
        if torch.device(device).type != "cuda":
            return func(*args, **given)
        if given.get("generator") is not None:
            raise RuntimeError(
                f"{func.__name__}: a generator of the CPU for a tensor on the device"
            )
        made = func(*args, **given | {"device": CPU})
        if func in _FROM_DATA and not cuda.has(made):
            cuda.waits["copy to the device"] += 1
        # What shares an array's memory is copied: the array stays on the CPU.
        return cuda.put(made.clone() if func is torch.as_tensor else made)

    def _within(self, func: Callable, args: Sequence, given: Mapping) -> Any:
        """Call a function of PyTorch; what it makes for itself lies where its arguments do."""
        before = self.cuda.within
        self.cuda.within = any(map(self.cuda.has, _tensors((args, given))))
        try:
            return func(*args, **given)
        finally:
            self.cuda.within = before

    def _to(self, tensor: torch.Tensor, *args: Any, **given: Any) -> torch.Tensor:
        if args and isinstance(args[0], torch.Tensor):
            device, dtype = CUDA if self.cuda.has(args[0]) else CPU, args[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(
                *args, **{k: v for k, v in given.items() if k != "copy"}
            )
        cast = tensor if dtype is None else torch.Tensor.to(tensor, dtype)
        return cast if device is None else self.cuda.moved(cast, device)


class _Operations(TorchDispatchMode):
    """Sees every operation, also those of the way back and below `vmap`."""

    def __init__(self, cuda: PretendCuda) -> None:
        super().__init__()
        self.cuda = cuda

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence = (), kwargs: Mapping | None = None
    ) -> Any:
        given = dict(kwargs or {})
        tensors = list(_tensors((args, given)))
        here = [x for x in tensors if not self.cuda.has(x)]
        if not tensors and self.cuda.within:
            return self._put(func(*args, **given))
        if len(here) == len(tensors):
            return func(*args, **given)
        operation = func.overloadpacket
        if operation is _aten.copy_:
            if here:
                self.cuda.waits["copy_"] += 1
            return func(*args, **given)
        self._check(func, args, given, here)
        self._count(func, args)
        return self._put(func(*args, **given))

    def _put(self, made: Any) -> Any:
        for tensor in _tensors(made):
            self.cuda.put(tensor)
        return made

    def _check(self, func: Any, args: Sequence, given: Mapping, here: list[torch.Tensor]) -> None:
        """Refuse what a GPU refuses."""
        if given.get("generator") is not None:
            raise RuntimeError(f"{func}: a generator of the CPU for a tensor on the device")
        wrong = here if "fused" in str(func) else [x for x in here if x.dim()]
        if func.overloadpacket in _INDEXED and self.cuda.has(args[0]):
            self.cuda.waits["index from the CPU"] += len(here)
            wrong = []
        if wrong:
            shapes = ", ".join(str(tuple(x.shape)) for x in wrong)
            raise RuntimeError(
                f"{func}: expected all tensors to be on the same device, but found at least two,"
                f" cuda:0 and cpu (of shape {shapes})"
            )

    def _count(self, func: Any, args: Sequence) -> None:
        operation = func.overloadpacket
        masked = operation in _INDEXED and any(x.dtype == torch.bool for x in _tensors(args[1]))
        if masked or operation in _WAITS:
            self.cuda.waits[str(operation)] += 1
        if not func.is_view and operation not in _FREE:
            self.cuda.launches[str(operation)] += 1


@contextmanager
def flags_restored() -> Iterator[None]:
    """Put PyTorch's flags for GPUs back at the end; some of them speak of CPUs, too."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    before = cuda.matmul.fp32_precision, cudnn.conv.fp32_precision
    varies = cudnn.deterministic, cudnn.benchmark
    fused = {
        cuda.enable_flash_sdp: cuda.flash_sdp_enabled(),
        cuda.enable_mem_efficient_sdp: cuda.mem_efficient_sdp_enabled(),
        cuda.enable_cudnn_sdp: cuda.cudnn_sdp_enabled(),
    }
    try:
        yield
    finally:
        cuda.matmul.fp32_precision, cudnn.conv.fp32_precision = before
        cudnn.deterministic, cudnn.benchmark = varies
        for enable, enabled in fused.items():
            enable(enabled)


class PretendRecorder:
    """Records passes as `fedlogit.engine.graphed` does; to replay one is to run it again.

    Of what a graph is, that is what Python can get wrong: a replay sees the objects and numbers of
    the pass that was recorded, reads inputs where they were then, and overwrites what it returned.
    """

    def __init__(self, device: torch.device) -> None:
        assert device.type == "cuda"

    def record(self, given: graphed.Tensors, run: graphed.Pass, label: str) -> graphed.Recording:
        inputs, output = {name: values.clone() for name, values in given.items()}, []

        def replay(given: graphed.Tensors) -> torch.Tensor:
            for name, values in given.items():
                inputs[name].copy_(values)
            found = run(inputs)
            if not output:
                output.append(found.clone())
            return output[0].copy_(found)

        return mock.Mock(replay=replay)


@contextmanager
def pretend_cuda() -> Iterator[PretendCuda]:
    """Let this thread believe, while the context lasts, that there is one GPU."""
    # It multiplies as runs on the CPU do, also where none came before in this process.
    configure_float32_matmul(torch.device("cpu"))
    cuda = PretendCuda()
    answers = {
        "is_available": lambda: True,
        "is_bf16_supported": lambda *_: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "get_device_name": lambda *_: "a GPU that is not there",
        "max_memory_allocated": lambda *_: 0,
        "reset_peak_memory_stats": lambda *_: None,
        "synchronize": lambda *_: None,
    }
    with ExitStack() as stack:
        stack.enter_context(flags_restored())
        for name, answer in answers.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        # An optimizer asks whether its steps are being captured, in PyTorch 2.15 this way.
        stack.enter_context(
            mock.patch.object(torch.accelerator, "current_accelerator", return_value=None)
        )
        stack.enter_context(mock.patch.object(graphed, "Recorder", PretendRecorder))
        stack.enter_context(_Names(cuda))
        stack.enter_context(_Operations(cuda))
        yield cuda
