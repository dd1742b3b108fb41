"""What holds for every partition in the package, including those added later."""

import numpy as np
import pytest

from fedlogit.component import catalogue
from fedlogit.partition import Partition, get, make_split

# Values for parameters that have no default; a partition that has none of those needs no entry.
ARGUMENTS = {
    "dir_class": "(0.5)",
    "dir_client": "(0.5)",
    "dir_equal": "(0.5)",
    "k_classes": "(3, private_size=300)",
    "pathological": "(3)",
    "pls": "(2, 100, 10)",
    "quantity": "(0.5)",
}
CLIENTS, CLASSES, SAMPLES = 5, 10, 2000
LABELS = np.random.default_rng(1).integers(0, CLASSES, SAMPLES)
GROUPS = np.random.default_rng(2).permutation(np.arange(SAMPLES) % CLIENTS) * 3

every = pytest.mark.parametrize("name", sorted(catalogue("fedlogit.partition", Partition)))


def rule(name):
    return get(name + ARGUMENTS.get(name, ""))


def split(name, seed):
    return rule(name).split(LABELS, CLIENTS, CLASSES, seed, GROUPS)


def test_all_partitions_of_the_papers_exist():
    assert set(catalogue("fedlogit.partition", Partition)) >= {
        "contiguous",
        "dir_class",
        "dir_client",
        "fr",
        "fr_repeat",
        "frm",
        "iid",
        "k_classes",
        "maverick",
        "natural",
        "pathological",
        "pls",
        "sls",
        "sls_fixed",
        "sls_random",
    }


@every
def test_it_looks_at_labels_or_says_that_it_does_not(name):
    """Then a text can be divided by it."""
    others = [rule(name).split(y, CLIENTS, CLASSES, 0, GROUPS) for y in (LABELS, LABELS[::-1])]
    same = all(np.array_equal(*parts) for parts in zip(*others, strict=True))
    assert same is not rule(name).by_class


@every
def test_indices_are_valid_ascending_and_not_empty(name):
    parts = split(name, 0)
    assert len(parts) == CLIENTS
    for part in parts:
        assert part.dtype == np.int64
        assert part.ndim == 1
        assert len(part) > 0
        assert part[0] >= 0
        assert part[-1] < SAMPLES
        assert (np.diff(part) >= 0).all()


@every
def test_samples_repeat_only_where_the_definition_says_so(name):
    partition, parts = rule(name), split(name, 0)
    if not partition.repeats:
        assert all(len(np.unique(part)) == len(part) for part in parts)
    if partition.disjoint:
        different = np.concatenate([np.unique(part) for part in parts])
        assert len(np.unique(different)) == len(different)


@every
def test_the_seed_decides_everything(name):
    first, again, other = split(name, 0), split(name, 0), split(name, 1)
    assert all(map(np.array_equal, first, again))
    assert all(map(np.array_equal, first, other)) is not rule(name).random


@every
def test_the_global_generator_is_neither_read_nor_moved(name):
    np.random.seed(5)  # noqa: NPY002
    first, after = split(name, 0), np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    assert np.random.random() == after  # noqa: NPY002
    assert all(map(np.array_equal, first, split(name, 0)))


@every
def test_input_is_not_modified(name):
    labels, groups = LABELS.copy(), GROUPS.copy()
    rule(name).split(labels, CLIENTS, CLASSES, 0, groups)
    assert np.array_equal(labels, LABELS)
    assert np.array_equal(groups, GROUPS)


@every
def test_counts_are_those_of_the_indices(name):
    call = name + ARGUMENTS.get(name, "")
    made = make_split(LABELS, CLASSES, call, CLIENTS, 0, groups=GROUPS)
    for part, counts in zip(made.clients, made.counts, strict=True):
        assert [int((LABELS[part] == k).sum()) for k in range(CLASSES)] == counts.tolist()


@every
def test_a_lost_class_is_noted(name):
    partition = rule(name)
    parts = split(name, 0)
    kept = [part[LABELS[part] != 7] for part in parts]
    assert any("no client holds class 7" in note for note in partition.notes(LABELS, kept))
    whole = [np.arange(SAMPLES)] * CLIENTS
    assert not any("no client holds" in note for note in partition.notes(LABELS, whole))
