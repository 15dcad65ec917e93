"""The job's own rows (metadata, spec without the template) of the table that every field is tested against."""

from __future__ import annotations

from tests.pure.spec_rows import ABSENT, REQUIRED, Row, flag, part, text, whole

NAMES_REFUSED = ("", "a.b", "-a", "a-", "a b", "a/b", "é", "a\n", "a\tb", "\x1b[31m", "..", "a" * 58, "a" * 10_000)

JOB_ROWS: list[Row] = [
    part("metadata", REQUIRED, {"name": "n", "labels": {}, "workspace": "w"}),
    text("metadata.name", REQUIRED, ("train", "a", "A_9", "_", "_a-b_", "a" * 57), NAMES_REFUSED),
    text("metadata.workspace", "default", ("default", "team-7", "a" * 57), (*NAMES_REFUSED, "Team", "a_b")),
    Row(
        "metadata.labels",
        {},
        ({}, {"team": "v"}, {"team.io/k_1": ""}, {"k": "é " * 10}, {f"k{n}": "" for n in range(64)}),
        (
            {"astraeus.io/x": "1"},
            {"job.astraeus.io/name": "1"},
            {"stado.io/a": "1"},
            {"": "x"},
            {"a=b": "x"},
            {"k": 1},
            {"k": None},
            {"k": "\n"},
            {"k": "\0"},
            {"k" * 254: ""},
            {"k": "v" * 1025},
            {1: "x"},
            {f"k{n}": "" for n in range(65)},
            [],
            "x",
            None,
            [["a", "b"]],
        ),
    ),
    part("spec", REQUIRED, ABSENT),
    whole("spec.priority", 0, -1000, 1000),
    part("spec.array", ABSENT, {"size": 1, "max_parallel": 0}),
    whole("spec.array.size", REQUIRED, 1, 10_000, beside={"spec.array": {}}),
    whole("spec.array.max_parallel", 0, 0, 10_000, beside={"spec.array.size": 10_000}),
    Row("spec.start", "Independent", ("Independent",), ("Gang", "MinAvailable", "independent", "", "x", None, 1)),
    Row("spec.on_failure", "RestartTask", ("RestartTask",), ("RestartJob", "Fail", "", None, 1, [])),
    whole("spec.max_task_failures", 0, 0, 10_000),
    text("spec.cwd", ABSENT, ("/", "/home/a b/ü", "/" + "a" * 4094), ("", "relative", "./x", "/" + "a" * 4095)),
    text("spec.workdir", ABSENT, ("/data", "sub/dir", ".", "a..b"), ("", "..", "a/../b", "a" * 4096)),
    flag("spec.exclusive"),
    text(
        "spec.pinned_host", ABSENT, ("gpu-1", "host.example.org", "a" * 255), ("", "a b", "a/b", ".", "-a", "a" * 256)
    ),
    flag("spec.resident"),
    flag("spec.terminates_agent"),
]
