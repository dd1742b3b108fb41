"""How float32 is computed: never in less than float32, and the same way every time."""

from __future__ import annotations

import torch

__all__ = ["configure_float32_matmul"]


def configure_float32_matmul(device: torch.device) -> str:
    """Set how a device multiplies float32 matrices; return the name that results carry.

    Less than float32 is the setting `precision` of a run, never a default of a library.
    """
    return _on_gpu() if device.type == "cuda" else _on_cpu()


def _on_gpu() -> str:
    """Forbid TF32, which PyTorch lets cuDNN use by default, and algorithms that vary.

    Fused attention adds up gradients in an order that varies; written as products, it does not.
    """
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    torch.backends.cudnn.conv.fp32_precision = "ieee"  # type: ignore[attr-defined]
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    return "ieee"


def _on_cpu() -> str:
    """Take the fastest route on this CPU that stays f32.

    PyTorch's bundled BLAS takes its AVX2 path on AMD chips. The setting ``medium`` routes products
    to oneDNN, which on most chips stays f32 but on some may round to bf16; so it is kept only if
    a product's error against f64 is within ten times that of the default route. Another order of
    summation costs a factor of two or three; bf16 would cost thousands.
    """
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(256, 512, generator=generator)
    b = torch.randn(512, 128, generator=generator)
    exact = a.double() @ b.double()

    def error(setting: str) -> float:
        torch.set_float32_matmul_precision(setting)
        return float(((a @ b).double() - exact).abs().max())

    reference, routed = error("highest"), error("medium")
    if routed <= 10 * reference:
        return "onednn"
    torch.set_float32_matmul_precision("highest")
    return "default"
