"""Words of options, each read once: variables and their files, deadlines, GPUs, signals, launchers, scripts, lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.asking import choices, entries, launcher, moments, script, variables
from stado_like.errors import Refused, UsageError

NOW_S = 1_790_000_000.5  # 2026-09-21T14:13:20.5Z

FILES = [
    ("A=1", {"A": "1"}),
    ("A=1\nB=2\n", {"A": "1", "B": "2"}),
    ("# no\n\n  \nA=1", {"A": "1"}),
    ("export A=1\n  B = two words  \n", {"A": "1", "B": "two words"}),
    ("A=x # said\nB=x#y\nC=# empty", {"A": "x", "B": "x#y", "C": ""}),
    ("A=\nB=''\nC=\"\"", {"A": "", "B": "", "C": ""}),
    ("A='a $b \"c\" # d\\n' # why", {"A": 'a $b "c" # d\\n'}),
    ('A="a\\nb \\"c\\" \\$d \\\\ \\q"', {"A": 'a\nb "c" $d \\ \\q'}),
    ("A='one\ntwo'\nB=3", {"A": "one\ntwo", "B": "3"}),
    ('A="one\ntwo"\nB=3', {"A": "one\ntwo", "B": "3"}),
    ('A=it\'s\nB="$HOME"', {"A": "it's", "B": "$HOME"}),
    ("A=1\nA=2", {"A": "2"}),
    ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
    ("\ufeffA=1", {"A": "1"}),
    ("TOKEN\nA=b=c", {"TOKEN": "t", "A": "b=c"}),
    ("", {}),
]


@pytest.mark.parametrize(("text", "found"), FILES)
def test_a_file_of_variables_is_read_as_its_grammar_says(text: str, found: dict[str, str]) -> None:
    assert variables.of_file(text, {"TOKEN": "t"}, "vars") == found


def test_every_wrong_line_of_a_file_of_variables_is_told_with_its_number() -> None:
    text = "A=1\n=2\n\nNOT_HERE\nwhat is this\nB='x' y\nC=\"never closed\n"
    with pytest.raises(UsageError) as told:
        variables.of_file(text, {}, "vars")
    assert told.value.detail == {
        "line 2": "has no variable's name at its beginning",
        "line 4": "NOT_HERE is not set here, so it cannot be copied",
        "line 5": "has no = after what",
        "line 6": "there is text after the closing quote of B",
        "line 7": "the quote of C is never closed",
    }


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text(st.characters(exclude_characters="\r'"))))
def test_single_quotes_keep_every_text(env: dict[str, str]) -> None:
    text = "".join(f"{name}='{value}'\n" for name, value in env.items())
    assert variables.of_file(text, {}, "vars") == env


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("2026-12-31T12:00:00Z", "2026-12-31T12:00:00Z"),
        ("2026-12-31T12:00:00+01:00", "2026-12-31T11:00:00Z"),
        ("2026-12-31t12:00:00.2-0530", "2026-12-31T17:30:01Z"),
        ("2026-12-31 12:00", "2026-12-31T12:00:00Z"),
        (" 2026-12-31T12:00:30 ", "2026-12-31T12:00:30Z"),
        ("+2h", "2026-09-21T16:13:21Z"),
        ("+1-12", "2026-09-23T02:13:21Z"),
        ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z"),
    ],
)
def test_a_deadline_is_one_moment(text: str, stored: str) -> None:
    got = moments.deadline(text, NOW_S)
    assert got == stored
    assert moments.deadline(got, NOW_S) == stored
    assert moments.words(got) == stored.replace("T", " ").replace("Z", " UTC")


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2h", "2026-12-31", "12:00", "2026-13-31 12:00", "2026-12-31 25:00", "2026-W05", "+", "+x", "+0",
     "2020-01-01 00:00", "2026-09-21T14:13:20Z", "٢٠٢٦-12-31 12:00"],
)  # fmt: skip
def test_what_is_no_deadline_or_has_passed_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        moments.deadline(text, NOW_S)


def test_every_form_that_help_names_is_accepted() -> None:
    """The format accepted differs from the help text elsewhere: here each list is read back."""
    for form in moments.FORMS.replace("or from now: ", "").split(", "):
        moments.deadline(form.split(" (")[0], 0.0)
    for form in choices.GPU_FORMS.split("), "):
        assert choices.gpus(form.split(" (")[0])[0] == 4
    for form in choices.SIGNAL_FORMS.split(", "):
        assert choices.signal_before_limit(form.split(" (")[0])["signal"] == "SIGUSR1"
    for form in choices.AFTER_FORMS.replace("; also", ",").split(", "):
        assert choices.awaited(form)["job"] == "JOB"


@pytest.mark.parametrize(
    ("said", "read"), [(8, (8, "")), ("8", (8, "")), ("H100:8", (8, "H100")), ("RTX 4090:1", (1, "RTX 4090"))]
)
def test_gpus(said: int | str, read: tuple[int, str]) -> None:
    assert choices.gpus(said) == read


@pytest.mark.parametrize("said", ["", "H100", ":8", "H100:", "8:H100", "a:b:2", "-1", "1.5", True, None])
def test_what_is_no_number_of_gpus_is_refused(said: object) -> None:
    with pytest.raises(UsageError, match="is not a number of GPUs"):
        choices.gpus(said)  # type: ignore[arg-type]


@pytest.mark.parametrize("said", ["80", "80GB", "80 gb", "80G", "80GiB", 80])
def test_gpu_memory_has_one_unit(said: int | str) -> None:
    assert choices.gpu_memory_gb(said) == 80


@pytest.mark.parametrize("said", ["", "80MB", "79.6", "x", True])
def test_what_is_no_gpu_memory_is_refused(said: str | int) -> None:
    with pytest.raises(UsageError, match="is not the memory of a GPU"):
        choices.gpu_memory_gb(said)


@pytest.mark.parametrize(
    ("said", "signal", "seconds"),
    [("USR1@120", "SIGUSR1", 120), ("B:sigint@2m", "SIGINT", 120), ("TERM", "SIGTERM", 60), ("KILL@1", "KILL", 1)],
)
def test_a_signal_before_the_limit(said: str, signal: str, seconds: int) -> None:
    assert choices.signal_before_limit(said) == {"signal": signal, "seconds": seconds}


@pytest.mark.parametrize("said", ["", "@5", "USR1@", "USR1@x"])
def test_what_is_no_signal_before_the_limit_is_refused(said: str) -> None:
    with pytest.raises(UsageError):
        choices.signal_before_limit(said)


@pytest.mark.parametrize(
    ("said", "job", "state"),
    [
        ("train", "train", "Completed"),
        ("train.2:ended", "train.2", "Ended"),
        ("ws/train:afternotok", "ws/train", "Failed"),
        ("afterany:train", "train", "Ended"),
        ("failed:ended", "failed", "Ended"),
    ],
)
def test_a_job_to_wait_for(said: str, job: str, state: str) -> None:
    assert choices.awaited(said) == {"job": job, "state": state}


@pytest.mark.parametrize("said", ["", ":", "train:", "train:Running", ":Failed", "a:b:c", "afterok:a:b"])
def test_what_is_no_job_to_wait_for_is_refused(said: str) -> None:
    with pytest.raises(UsageError, match="which job to wait for"):
        choices.awaited(said)


def test_torchrun_on_one_machine_is_plain_words() -> None:
    assert launcher.torchrun(["python", "-u", "a.py", "$x"], gpus=8, several=False) == [
        *("torchrun", "--standalone", "--nproc-per-node=8", "a.py", "$x")
    ]
    assert launcher.torchrun(["-m", "pkg"], gpus=0, several=False)[2:] == ["--nproc-per-node=1", "-m", "pkg"]


def test_torchrun_on_several_machines_hands_the_words_over_unread() -> None:
    """A launcher line that the submitting shell expanded: nothing of the program's words is in the shell's text."""
    words = launcher.torchrun(["a.py", '$(date) "x'], gpus=16, several=True)
    assert words[:2] == ["bash", "-c"] and words[3:] == ["torchrun", "a.py", '$(date) "x']
    assert "a.py" not in words[2] and '"$@"' in words[2]


@pytest.mark.parametrize("words", [[], ["torchrun", "a.py"], ["python"], ["python", "-c", "1"]])
def test_torchrun_of_what_it_cannot_start_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="torchrun"):
        launcher.torchrun(words, gpus=1, several=False)


@pytest.mark.parametrize(
    ("first", "before"),
    [
        ("#!/bin/sh", ["/bin/sh", "-c"]),
        ("#!/bin/bash -eu", ["/bin/bash", "-eu", "-c"]),
        ("#!/bin/sh -", ["/bin/sh", "-c"]),
        ("#!/bin/bash -e --", ["/bin/bash", "-e", "-c"]),
        ("#! /usr/bin/env -S bash -e", ["/usr/bin/env", "-S", "bash", "-e", "-c"]),
        ("echo", ["bash", "-c"]),
        ("#!", ["bash", "-c"]),
    ],
)
def test_a_shells_script_is_the_shells_own_argument(first: str, before: list[str]) -> None:
    text = f"{first}\nexit 3\n"
    assert script.command(text, "d/go.sh", ["a b"]) == [*before, text, "d/go.sh", "a b"]


def test_another_languages_script_is_laid_down_by_a_loader() -> None:
    words = script.command("#!/usr/bin/env python3\n1\n", 'd/a"$b.py', ["x"])
    assert words[:2] == ["sh", "-c"] and words[3:] == ['d/a"$b.py', "#!/usr/bin/env python3\n1\n", "x"]
    assert 'exec /usr/bin/env python3 "$f" "$@"' in words[2] and 'a\\"\\$b.py' in words[2]


@pytest.mark.parametrize(
    ("body", "name", "told"),
    [
        (b"x" * 122_881, "a.sh", "--workdir"),
        (b"#!/bin/sh\r\nls\r\n", "a.sh", "sed -i"),
        (b"cd x\r\nls\r\n", "a.sh", "sed -i"),
        (b"ls\n\xff\n", "a.sh", "line 2"),
        (b" \n", "a.sh", "empty"),
    ],
)
def test_a_script_that_would_not_run_as_meant_is_refused(body: bytes, name: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        script.text_of(body, name)
    assert told in f"{refused.value.message} {refused.value.next_step}"


def test_a_mark_of_utf_8_before_a_script_does_not_hide_what_runs_it() -> None:
    body = b"\xef\xbb\xbf#!/usr/bin/env python3\nprint(1)\n"
    assert script.looks_like_a_script("tool", body)
    assert "exec /usr/bin/env python3" in script.command(script.text_of(body, "tool"), "tool", [])[2]


@pytest.mark.parametrize(("name", "told"), [("a.py", "-- python a.py"), ("run.yaml", "-f run.yaml")])
def test_a_file_that_bash_does_not_read_is_refused_without_an_interpreter(name: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        script.command("print(1)\n", name, [])
    assert told in refused.value.next_step


def test_lines_become_entries() -> None:
    read = entries.lines("a\n\n  b c \r\n \nä".encode(), "names.txt")
    assert read.entries == ("a", "  b c ", "ä")
    assert read.words == "each line of names.txt: 3 tasks; 2 empty lines are left out"
    assert entries.lines(b"\xef\xbb\xbfa\n", "x").words == "each line of x: 1 task"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "no line that is not empty"),
        (b"a\nb\xffc\n", "line 2 of f is not UTF-8: byte 0xff at position 2"),
        (b"a\0b\n", "line 1 of f holds a NUL"),
        (b"x\n" * 10_001, "10001 lines, and an array has at most 10000"),
    ],
)
def test_lines_that_are_no_entries_are_refused(body: bytes, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        entries.lines(body, "f")


@pytest.mark.parametrize(("gpus", "processes"), [("8", "8"), ("0", "1"), (None, "1")])
def test_the_launcher_line_of_several_machines_as_a_shell_reads_it(
    tmp_path: Path, gpus: str | None, processes: str
) -> None:
    fake = tmp_path / "torchrun"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "7"}
    words = launcher.torchrun(["a.py", '$(date) "x'], gpus=16, several=True)
    ran = subprocess.run(
        words, env=env | ({"STADO_GPU_COUNT": gpus} if gpus else {}), capture_output=True, text=True, timeout=30
    )
    assert ran.stdout.splitlines() == [
        *("--nnodes=2", "--node-rank=1", f"--nproc-per-node={processes}", "--master-addr=h", "--master-port=7"),
        *("a.py", '$(date) "x'),
    ]
