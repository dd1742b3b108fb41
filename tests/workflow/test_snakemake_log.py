from __future__ import annotations

import io
import logging
import signal

import pytest

from fedlogit.workflow.snakemake_log import SnakemakeProgress, duration, shorten_messages


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def snakemake(clock):
    """Return a function that sends a message of Snakemake's and returns what is printed of it."""
    held = {"filter": SnakemakeProgress(clock=clock)}

    def send(event: str | None, message: str | None = None, **facts) -> str | None:
        record = logging.LogRecord("snakemake", logging.INFO, "", 0, message, (), None)
        record.__dict__ |= {"event": event} | facts
        return str(record.msg) if held["filter"].filter(record) else None

    send.use = lambda progress: held.update(filter=progress)
    return send


def finish(snakemake, number: int, rule: str, what: str, total: int) -> str | None:
    snakemake("job_info", jobid=number, rule_name=rule, wildcards={"run": what})
    assert snakemake("job_finished", "Finished jobid", job_id=number) is None
    return snakemake("progress", done=number, total=total)


def test_a_run_is_counted_and_the_time_left_is_that_of_the_mean_run(snakemake, clock):
    snakemake("run_info", "Job stats:", stats={"train": 4, "table": 1, "total": 5})
    clock.now = 100
    said = finish(snakemake, 1, "train", "mnist/uwa/seed0", 5)
    assert said == "Run 1 of 4, about 5 min left: mnist/uwa/seed0"
    clock.now = 160  # two runs in 160 s: two more take as long
    assert finish(snakemake, 2, "train", "b", 5) == "Run 2 of 4, about 3 min left: b"
    finish(snakemake, 3, "train", "c", 5)
    assert finish(snakemake, 4, "train", "d", 5) == "Run 4 of 4: d"
    assert finish(snakemake, 5, "table", "celm", 5) == "Step 5 of 5: table celm"


def test_clients_of_one_shot_runs_count_as_runs(snakemake):
    snakemake("run_info", "", stats={"train_clients": 1, "train": 1, "total": 2})
    assert (
        finish(snakemake, 1, "train_clients", "a", 2) == "Run 1 of 2, about 0 s left: clients of a"
    )


def test_jobs_that_finish_together_have_a_line_each(snakemake):
    snakemake("run_info", "", stats={"partition": 2, "total": 2})
    for number in (1, 2):
        snakemake("job_info", jobid=number, rule_name="partition", wildcards={"split": "iid"})
        snakemake("job_finished", "", job_id=number)
    said = snakemake("progress", done=2, total=2)
    assert said == "Step 2 of 2: partition iid\nStep 2 of 2: partition iid"


def test_paragraphs_about_jobs_are_left_out_unless_asked_for(snakemake):
    chatter = ("shellcmd", "job_started", "group_info")
    assert [snakemake(event, "text") for event in chatter] == [None] * 3
    assert snakemake(None, "Select jobs to execute...") is None
    snakemake.use(SnakemakeProgress(all_messages=True))
    assert [snakemake(event, "text") for event in chatter] == ["text"] * 3


@pytest.mark.parametrize("event", ["job_error", "error", None])
def test_errors_pass_as_they_are(snakemake, event):
    assert snakemake(event, "Error in rule train") == "Error in rule train"


@pytest.mark.parametrize(
    "told",
    [
        "UserMistake in file \"/w/workflow/rules/common.smk\", line 49:\nunknown scale 'foo'\n"
        '  File "/w/workflow/Snakefile", line 29, in <module>',
        'InputFunctionException in rule figure in file "/w/results.smk", line 36:\nError:\n'
        "  UserMistake:\n    unknown scale 'foo'\nWildcards:\n  paper=fedol\nTraceback:\n"
        '  File "/w/workflow/rules/common.smk", line 66, in <lambda>',
    ],
)
def test_a_users_mistake_is_one_line(snakemake, told):
    assert snakemake("error", told) == "error: unknown scale 'foo'"
    other = told.replace("UserMistake", "KeyError")
    assert snakemake("error", other) == other


def test_a_target_that_no_rule_makes_is_one_line_with_the_nearest(snakemake):
    snakemake.use(SnakemakeProgress(targets=lambda: ["tally_train", "celm"]))
    told = (
        "MissingRuleException:\nNo rule to produce tally_trian (if you use input functions make"
        " sure that they don't raise unexpected exceptions)."
    )
    said = "error: no rule makes 'tally_trian'; did you mean 'tally_train'?"
    assert snakemake("error", told).startswith(said)


def test_all_lines_of_a_mistake_are_told(snakemake):
    told = "InputFunctionException:\nError:\n  UserMistake:\n    2 missing:\n      a\n      b"
    assert snakemake("error", f"{told}\nWildcards:\n") == "error: 2 missing:\n  a\n  b"


def test_a_terminal_has_one_line_and_errors_begin_a_new_one(snakemake):
    screen = io.StringIO()
    snakemake.use(SnakemakeProgress(terminal=screen))
    snakemake("run_info", "", stats={"train": 2, "total": 2})
    assert finish(snakemake, 1, "train", "a", 2) is None
    assert finish(snakemake, 2, "train", "b", 2) is None
    assert screen.getvalue() == ("\r\x1b[KRun 1 of 2, about 0 s left: a\r\x1b[KRun 2 of 2: b")
    snakemake("job_error", "Error")
    assert screen.getvalue().endswith("b\n")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h")]
)
def test_a_time_is_told_as_people_say_it(seconds, said):
    assert duration(seconds) == said


def test_a_workflow_that_is_read_twice_is_shortened_once():
    logger = logging.Logger("of snakemake")
    shorten_messages(logger, all_messages=False)
    shorten_messages(logger, all_messages=False)
    assert len(logger.filters) == 1


def test_while_snakemake_stops_its_jobs_another_ctrl_c_is_for_them_alone(snakemake):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    message = "Terminating processes on user request, this might take some time."
    assert snakemake(None, message) == message
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):  # a third one ends a wait that does not end
        signal.raise_signal(signal.SIGINT)
