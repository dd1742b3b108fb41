"""The names of a job's files are those that jobs leave."""

from fnmatch import fnmatch

from fedlogit.runs import layout


def test_a_run_leaves_no_file_without_a_name(train, tmp_path):
    folder = train(tmp_path / "x", export=["weights", "logits"])
    second = {f".{name}" for name in layout.OUTPUTS_OF_RUN}
    named = {*layout.RECORDS, layout.EXPORTS, layout.FINISHED_NOTE, *second}
    assert {path.name for path in folder.iterdir()} == named
    assert {path.name for path in (folder / layout.EXPORTS).iterdir()} == {*layout.NOT_KEPT}
    assert named - {layout.EXPORTS} <= {*layout.WRITTEN}


def test_patterns_match_what_they_stand_for():
    assert layout.part_of(12) == "part-12.safetensors"
    assert fnmatch(layout.part_of(12), layout.PARTS)
    both = (layout.CHECKPOINT, layout.CHECKPOINT_BEFORE)
    assert all(fnmatch(name, layout.CHECKPOINTS) for name in both)
