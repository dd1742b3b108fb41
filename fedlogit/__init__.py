"""fedlogit: logit-based federated learning, reproduced.

Layers, each importing only what lies below it::

    commands/                         python -m fedlogit COMMAND
    results/                          tables, figures, verdicts
    papers                            grids of runs, from the papers' YAML files
    runs/                             from a spec to a folder that describes itself
    methods/                          one file per method of the papers
    federation/                       clients, a public set, and what they send each other
    engine/                           how clients run: loop, native, unpadded, graphed, stacked
    aggregation/                      pure functions: client logits -> targets
    models/  partition/               architectures, partitions; neither knows of the other
    data/                             what data sets are, how they are got and loaded
    spec  config                      what a run is, and what a user may choose
    adversaries  participation        clients that attack, and which clients are present
    component  files  rng  errors …   below all
"""

__version__ = "0.4.0"
