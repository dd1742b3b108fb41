"""Numbers and tables as people read them, and files they are written to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fedlogit.files import write_atomic

__all__ = [
    "is_share",
    "markdown",
    "metric_label",
    "number",
    "sentence",
    "spread",
    "write_csv",
    "write_text",
]

# CELM's distances of divisions (Table 4), and of what.
_DISTANCES = {
    "jsd": "Jensen-Shannon distance",
    "emd": "earth mover's distance",
    "emd_direct": "earth mover's distance with clients in their order",
    "hellinger": "Hellinger distance",
}
_OF = {
    "": "",
    "_mean": " of the mean evidence",
    "_shares": " of class shares",
    "_uniform": " from uniform",
}
_NAMES = {
    **{f"{key}{of}": name + said for key, name in _DISTANCES.items() for of, said in _OF.items()},
    "accuracy": "test accuracy",
    "accuracy_std": "standard deviation of test accuracy over clients",
    "balanced_accuracy": "balanced test accuracy",
    "bytes_up": "bytes sent per client per round",
    "bytes_down": "bytes received per client per round",
    "seconds": "seconds of training",
    "weight_max": "mean over public samples of the largest weight",
    "rare_accuracy": "rare-class accuracy",
    "auroc": "AUROC",
    "fpr": "false-positive rate",
    "shapley_correlation": "rank correlation with Shapley values",
    "seconds_probe": "seconds of probing in a warm-up round",
    "probe_share": "share of a warm-up round spent probing",
    "mebibytes_up": "MiB sent per client per round",
    "mebibytes_up_f64": "MiB with numbers of 8 bytes",
    "tail_accuracy": "test accuracy, mean over the last rounds",
    "tail_perplexity": "perplexity, mean over the last rounds",
    "peak_accuracy": "largest test accuracy of any tested round",
    "cross_peer_std": "standard deviation over peers, mean over the last rounds",
    "payload_megabytes": "MB of a peer in the whole run",
    "payload_gigabytes": "GB of a peer in the whole run",
    "payload_star_megabytes": "MB with merges through a server",
    "payload_star_gigabytes": "GB with merges through a server",
    "payload_mesh_megabytes": "MB with merges from peer to peer",
    "payload_mesh_gigabytes": "GB with merges from peer to peer",
    "bytes_per_probe": "bytes of what a peer says about a probe",
    "reduction": "bytes of a soft label to those of what is sent",
    "loss_test": "cross-entropy on the test split, in nats",
    "theory_disagreement": "mean KL divergence of pairs of peers",
    "theory_correlation": "correlation of peers' being right",
    "theory_peer_accuracy": "mean accuracy of peers on probes",
    "theory_peer_least": "least accuracy of a peer on probes",
    "theory_vote_accuracy": "the tally's accuracy on probes",
    "theory_soft_accuracy": "the mean softmax's accuracy on probes",
    "theory_bound": "Proposition 1's bound",
    "theory_variance_hard": "variance of the tally's gradient",
    "theory_variance_soft": "variance of the mean softmax's gradient",
    "lost_classes": "classes that no client holds",
    "agreement": "share of pairs of clients that agree",
    "oracle_accuracy": "share with at least one client right",
}

_SHARES = {"agreement", "auroc", "cross_peer_std", "fpr", "probe_share"} | {
    "theory_bound",
    "theory_peer_least",
}
_PLACES = {
    "mebibytes_up": 2,
    "mebibytes_up_f64": 2,
    "payload_megabytes": 2,
    "payload_gigabytes": 4,
    "payload_star_megabytes": 2,
    "payload_star_gigabytes": 4,
    "payload_mesh_megabytes": 2,
    "payload_mesh_gigabytes": 4,
    "bytes_per_probe": 1,
    "perplexity": 1,
    "tail_perplexity": 1,
    "seconds": 1,
    "seconds_probe": 2,
    "shapley_correlation": 2,
    "theory_correlation": 2,
    "theory_disagreement": 3,
    "theory_variance_hard": 4,
    "theory_variance_soft": 4,
} | {f"{key}{of}": 3 for key in _DISTANCES for of in _OF}


def metric_label(metric: str) -> str:
    """Return what a metric is called in words: ``accuracy@10`` is test accuracy after round 10."""
    name, _, when = metric.partition("@")
    words = _NAMES.get(name, name.replace("_", " "))
    return f"{words} after round {when}" if when else words


def sentence(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def is_share(metric: str) -> bool:
    """Return whether a metric lies between 0 and 1, so that per cent makes sense."""
    return "accuracy" in metric or metric.startswith("weight") or metric in _SHARES


def number(value: float, metric: str, *, percent: bool = False, decimals: int | None = None) -> str:
    """Return a value of a metric: shares with 4 decimals (2 in per cent), bytes grouped.

    Of a payload below the last decimal two digits are shown, not zeros.
    """
    if math.isnan(value):
        return "–"
    places = _decimals(value, metric, percent) if decimals is None else decimals
    return f"{100 * value if percent and is_share(metric) else value:,.{places}f}"


def _decimals(value: float, metric: str, percent: bool) -> int:
    if is_share(metric):
        return 2 if percent else 4
    name = metric.partition("@")[0]
    places = _PLACES.get(name, 0)
    if name.startswith("payload_") and value:
        places = max(places, 1 - math.floor(math.log10(abs(value))))
    return places


def spread(
    mean: float, std: float, metric: str, *, percent: bool = False, decimals: int | None = None
) -> str:
    """Return ``mean ± std``; without a standard deviation (n=1), the mean alone."""
    text = number(mean, metric, percent=percent, decimals=decimals)
    if math.isnan(mean) or math.isnan(std):
        return text
    places = _decimals(mean, metric, percent) if decimals is None else decimals
    return f"{text} ± {number(std, metric, percent=percent, decimals=places)}"


def markdown(frame: pd.DataFrame, style: str = "pipe", right: Iterable[str] = ()) -> str:
    """Return a frame of strings as a table; `style` is one of tabulate's formats."""
    align = ["right" if column in set(right) else "left" for column in frame.columns]
    return frame.to_markdown(index=False, tablefmt=style, disable_numparse=True, colalign=align)


def write_text(path: Path, text: str) -> Path:
    """Write text that ends in one newline, atomically; return the path."""
    with write_atomic(path) as temporary:
        temporary.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return path


def write_csv(path: Path, frame: pd.DataFrame) -> Path:
    """Write a frame at full precision, atomically; return the path."""
    with write_atomic(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n")
    return path
