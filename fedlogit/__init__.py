"""fedlogit: logit-based federated learning, reproduced.

Floors, each importing only what lies below it::

    commands/                         python -m fedlogit COMMAND
    results/                          tables, figures, verdicts
    papers                            grids of runs, from the papers' YAML files
    methods/                          one file per method of the papers
    federation/                       clients and what they do in a round
    aggregation/                      pure functions: client logits -> targets
    models/  data/  partition/        each knows nothing of the others
    spec  component  rng  errors      ground floor
"""

__version__ = "0.1.0"
