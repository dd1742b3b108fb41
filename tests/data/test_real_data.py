"""The real files of an offline mirror, where FEDLOGIT_MIRROR names one."""

import os
from pathlib import Path

import pytest

from fedlogit.data import card
from fedlogit.data.content import check
from fedlogit.data.decode import decode
from fedlogit.data.raw import Raw
from fedlogit.data.sources import Mirror, read_sources

MIRROR = os.environ.get("FEDLOGIT_MIRROR")
NAMES = ["mnist", "fashion_mnist", "cifar10", "cifar100", "emnist47", "tiny_imagenet32"]


@pytest.mark.skipif(not MIRROR, reason="FEDLOGIT_MIRROR names no mirror folder")
@pytest.mark.parametrize("name", [*NAMES, "wikitext2_tokens"])
def test_the_mirror_holds_what_the_card_says(name, tmp_path):
    source = next(source for source in read_sources(name) if isinstance(source, Mirror))
    if not all((Path(MIRROR) / file).is_file() for file in source.paths(name)):
        pytest.skip(f"the mirror has no {name}")
    source.fetch(name, tmp_path, Path(MIRROR))
    digest = check(card(name), decode(source.format, Raw(tmp_path), card(name)), name)
    assert digest == card(name).digest
