"""What each kind of table, analysis and figure lets one choose under ``options``.

They are declared here, below `fedlogit.results` that uses them, so that a wrong one is refused when
the paper's file is read. A kind that is not declared, such as one of your own, is not checked then.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedlogit.frozen_config import FrozenConfig
from fedlogit.papers.schema import PlainText

__all__ = [
    "ANALYSES",
    "FIGURES",
    "Answer",
    "ByPublic",
    "ByRound",
    "BySetting",
    "Contribution",
    "KindOptions",
    "Level",
    "Lost",
    "NoOptions",
    "Pareto",
    "PeerBands",
    "Percent",
    "Printed",
]


class KindOptions(FrozenConfig):
    """Base of the options of a kind.

    Attributes:
        axes: The options that name an axis of the runs.
        metrics_in: Those that name a metric, or several.
        settings_in: Those that name a dotted key of a run's spec, or several.
    """

    axes: ClassVar[tuple[str, ...]] = ()
    metrics_in: ClassVar[tuple[str, ...]] = ()
    settings_in: ClassVar[tuple[str, ...]] = ()


class NoOptions(KindOptions):
    """Of a kind that lets one choose nothing."""


class Percent(KindOptions):
    """Of an analysis that prints shares.

    Attributes:
        percent: Print them in per cent, not as fractions.
    """

    percent: bool = False


class Answer(KindOptions):
    """Of which method to use when.

    Attributes:
        labelled: Methods that also learn from labelled samples which the others have not: they are
            compared with each other, in a column of their own.
    """

    labelled: tuple[str, ...] = ()


class Printed(Percent):
    """Of a table of means.

    Attributes:
        decimals: How many; None is what suits the metric.
    """

    decimals: int | None = Field(default=None, ge=0, le=15)


class Lost(KindOptions):
    """What is compared.

    Attributes:
        condition: The axis of the conditions.
        against: The label of the condition that the others are compared with.
        gained: Show points gained in place of points lost.
    """

    axes = ("condition",)

    condition: str
    against: str
    gained: bool = False


class Contribution(KindOptions):
    """What coalitions are worth.

    Attributes:
        value: The method whose runs, one for each coalition, give its worth: the accuracy of the
            global model that the coalition's clients train without the others.
    """

    value: str


class ByRound(KindOptions):
    """Of accuracy by round.

    Attributes:
        log: Draw the vertical axis logarithmically.
        shade_warm_up: Shade the rounds before a method sends anything but its model.
        enlarge: Show below each panel the last third of the rounds, on an axis that has the
            methods near the best alone; for a metric of which more is better.
        across: The axis whose values are panels side by side, a dotted key of a run's spec.
    """

    settings_in = ("across",)

    log: bool = False
    shade_warm_up: bool = False
    enlarge: bool = False
    across: str = "partition"


class ByPublic(KindOptions):
    """Of accuracy against the public set.

    Attributes:
        x: The axis across; by default the one axis of the runs that starts with ``public``.
        log: Draw it logarithmically.
    """

    axes = ("x",)

    x: str | None = None
    log: bool = False


class Level(FrozenConfig):
    """A method drawn as a horizontal line.

    Attributes:
        method: As on the axis ``method``.
        metric: Where it is not the figure's first.
        label: What the legend calls the method, where its label in the paper's file is too short.
    """

    method: str
    metric: str = ""
    label: PlainText = ""


class BySetting(KindOptions):
    """Of accuracy against a setting.

    Attributes:
        x: The setting across, a dotted key of a run's spec: ``public.size``, or
            ``method.probes_per_round`` for a parameter of the method.
        per_class: Divide it by the number of classes.
        log: Draw it on a logarithmic axis.
        lines: Keys whose values make a line.
        panels: Keys whose values make a panel.
        metrics: What to draw, a line each; the artefact's own if empty.
        levels: Methods that are drawn as horizontal lines.
        table: The published table whose numbers are drawn as hollow markers.
    """

    metrics_in = ("metrics",)
    settings_in = ("x", "lines", "panels")

    x: str
    per_class: bool = False
    log: bool = False
    lines: tuple[str, ...] = ()
    panels: tuple[str, ...] = ("dataset",)
    metrics: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    table: tuple[str, ...] = ()


class Pareto(KindOptions):
    """Of accuracy against bytes.

    Attributes:
        by: The axis whose values make a panel each.
        x: The metric across, of bytes or megabytes; bytes are drawn in MB, too. The default counts
            what a client sends, for all methods. ``payload_megabytes`` is TallyTrain's convention:
            models also as they are received, but predictions not.
    """

    axes = ("by",)
    metrics_in = ("x",)

    by: str = "dataset"
    x: str = "bytes_sent"


class PeerBands(KindOptions):
    """Of peers' accuracy by round.

    Attributes:
        band: How far it reaches: ``std``, one standard deviation over peers to both sides; or
            ``range``, from the least accurate peer to the most.
        beside: Methods whose means are drawn grey in every panel, to compare with.
    """

    band: Literal["std", "range"] = "std"
    beside: tuple[str, ...] = ()


ANALYSES: dict[str, type[KindOptions]] = {
    "answer": Answer,
    "chosen": Percent,
    "contribution": Contribution,
    "costs": NoOptions,
    "lost": Lost,
    "normality": NoOptions,
    "rank_correlation": NoOptions,
    "ranks": NoOptions,
}
"""Of tables with ``analysis``; those without have `Printed`."""

FIGURES: dict[str, type[KindOptions]] = {
    "accuracy_by_heterogeneity": NoOptions,
    "accuracy_by_public": ByPublic,
    "accuracy_by_round": ByRound,
    "accuracy_by_setting": BySetting,
    "accuracy_lost": Lost,
    "aggregation_weights": NoOptions,
    "bandwidth_ratio": NoOptions,
    "contributions_by_round": NoOptions,
    "contributions_by_value": Contribution,
    "critical_difference": NoOptions,
    "distribution_fidelity": NoOptions,
    "ensemble": NoOptions,
    "fpr_by_threshold": NoOptions,
    "logit_normality": NoOptions,
    "lost_by_share": Lost,
    "method_heat_map": NoOptions,
    "pareto": Pareto,
    "partitions": NoOptions,
    "peer_bands": PeerBands,
    "probe_heat_map": NoOptions,
    "probe_images": NoOptions,
    "pseudo_labels": NoOptions,
    "voting_theory": NoOptions,
}
"""Of figures, by ``plot``."""
