"""The project's own pages say what the code says: guards, keys, states, arrows, causes, sentences, commands, exits.

A page that only people compare with the code is wrong within a month. So every table that could be generated is
compared here instead, which leaves the page free to say why.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from stado_cli.main import ALIASES, COMMANDS
from stado_like.errors import Exit
from stado_like.job import day_keys, keys, reasons, reasons_placement
from stado_like.job.budget import OUTCOME_OF
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import IRIS_VIEW, TABLE, TERMINAL_JOB, TERMINAL_TASK, Cause, Decision, JobState, TaskState
from stado_like.job.terms import Ask

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("stado_like", "worker", "coordinator", "cli")
PROTOCOL, STATES, WORKER, README = (
    (ROOT / name).read_text() for name in ("docs/protocol.md", "docs/states.md", "docs/worker.md", "README.md")
)
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])


def rows(page: str, heading: str) -> list[list[str]]:
    """The first table after the line `heading`, without its head, as stripped cells."""
    after = page.split(f"\n{heading}\n", 1)[1].splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), itertools.dropwhile(_is_text, after)))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[2:]]


def _is_text(line: str) -> bool:
    return not line.startswith("|")


def guards_in_code() -> set[str]:
    found = set()
    for room in SHIPPED:
        for path in (ROOT / room).rglob("*.py"):
            found.update(re.findall(r"# guard: (.+?)\s*$", path.read_text(), re.MULTILINE))
    return found


# ---- docs/protocol.md


def test_every_guard_of_the_code_is_in_the_protocol_and_no_other() -> None:
    told = rows(PROTOCOL, "## 9. Guards")
    names = [row[0].strip("`") for row in told]
    assert len(names) == len(set(names))
    assert set(names) == guards_in_code()
    assert [row for row in told if not all(row)] == [], "a guard without its rule, or without what breaks"


def layout() -> list[str]:
    return [pattern for row in rows(PROTOCOL, "## 3. Layout") for pattern in re.findall("`([^`]+)`", row[0])]


def test_every_key_pattern_of_the_code_is_in_the_layout() -> None:
    drawn = [line[4:] for line in (keys.__doc__ or "").splitlines() if line.startswith("    ")]
    patterns = [word.strip(",") for line in drawn for word in line.split() if re.match(r"[a-z]+/", word)]
    assert len(patterns) >= 20
    assert [one for one in patterns if one not in layout()] == []


def test_every_key_that_is_built_has_a_place_in_the_layout() -> None:
    """The builders themselves, not their docstring."""
    j = JobId("default", "train", 1)
    a = AttemptId(j, 3, 2)
    ask = Ask(1000, 1 << 30, 0)
    built = [keys.job(j), keys.tombstone(j), keys.open_index(j), keys.entry(keys.QUEUED_OPEN, a, 0, 1, ask)]
    built += [keys.entry(keys.QUEUED_HELD, a, 0, 1, ask), keys.later(1, a, ask), keys.running(a), keys.heartbeat(a)]
    built += [keys.order("w-1", "place", a, 1), keys.order("w-1", "stop", a, 1), keys.end(a), keys.stop(j, 3)]
    built += [keys.verdict(j), keys.final(j), keys.waiting(j), keys.cancel_index(j), keys.cancel_index(j, 3)]
    built += [keys.bundle("0f" * 32), day_keys.day_part("default", "2026-01-31", "0f" * 16)]
    built += [keys.log_chunk(a, 0), keys.capacity("w-1"), keys.wanted("w-1"), keys.PAUSE, keys.DOORBELL]
    built += [keys.workspace("default")]
    built += [keys.STORE_VERDICT, keys.TICK_LOCK, keys.TICK_REPORT, keys.OBSERVED, keys.SWEEP_CURSOR]
    places = [re.compile(_as_regex(pattern)) for pattern in layout()]
    assert [key for key in built if not any(place.fullmatch(key) for place in places)] == []
    named = {"store": keys.STORE_VERDICT, "state": keys.TICK_LOCK}
    for key in (*named.values(), keys.TICK_REPORT, keys.OBSERVED, keys.SWEEP_CURSOR, keys.DOORBELL):
        assert key.rsplit("/", 1)[-1] in PROTOCOL


def _as_regex(pattern: str) -> str:
    parts = {
        "<ws>": "[a-z0-9-]+",
        "<job>": "[A-Za-z0-9_-]+",
        "<j>": r"[a-z0-9-]+\.[A-Za-z0-9_-]+\.\d+",
        "<J>": r"[a-z0-9-]+/[A-Za-z0-9_-]+\.\d+",
        "<a>": r"[a-z0-9-]+\.[A-Za-z0-9_-]+\.\d+\.\d{5}\.\d{6}",
        "<rank>": r"\d{5}",
        "<n>": r"\d{6}",
        "<k>": r"\d+",
        "<pppp>": r"\d{4}",
        "<created>": r"\d{13}",
        "<due>": r"\d{13}",
        "<ask>": r"c\d+m\d+g\d+x?",
        "<offset>": r"\d{12}",
        "<sha256>": "[0-9a-f]{64}",
        "<day>": r"\d{4}-\d\d-\d\d",
        "<format>": r"\d+",
        "<digest>": "[0-9a-f]{32}",
        "<worker>": "[A-Za-z0-9_-]+",
        "[.<rank>]": r"(\.\d{5})?",
        "{shape,waiting}": "(shape|waiting)",
        "…": ".+",
    }
    known = "|".join(re.escape(one) for one in sorted(parts, key=len, reverse=True))
    return "".join(parts.get(piece, re.escape(piece)) for piece in re.split(f"({known})", pattern))


# ---- docs/states.md


def test_tasks_states_as_the_code_has_them() -> None:
    told = {row[0]: row[2:] for row in rows(STATES, "## Tasks")}
    views = {state: IRIS_VIEW[state] for state in TaskState}
    assert told == {
        state.value: ["yes" if state in TERMINAL_TASK else "no", iris.name, str(iris.number), iris.shown, iris.colour]
        for state, iris in views.items()
    }


def test_every_arrow_is_in_the_table_and_no_other() -> None:
    told = [tuple(row) for row in rows(STATES, "### Every arrow")]
    drawn = {(str(state), str(event), str(arrow.to), str(arrow.who)) for (state, event), arrow in TABLE.items()}
    assert len(told) == len(set(told))
    assert set(told) == drawn


def test_jobs_states_as_the_code_has_them() -> None:
    told = {row[0]: row[2] for row in rows(STATES, "## Jobs")}
    assert told == {state.value: "yes" if state in TERMINAL_JOB else "no" for state in JobState}


def test_decisions_causes_and_outcomes_as_the_code_has_them() -> None:
    decisions = [row[0].strip("`") for row in rows(STATES, "## How an attempt ends")]
    assert decisions == [decision.value for decision in Decision]
    page = STATES.split("| cause | ended because |", 1)[1]
    told = rows("\n## x\n\n| cause | ended because |" + page, "## x")
    assert {row[0].strip("`"): row[2] for row in told} == {
        cause.value or "–": OUTCOME_OF[cause].value for cause in Cause
    }


SAMPLES: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("failures", "of_machines", "serving", "healthy"), (True, False)),
    **dict.fromkeys(("seconds", "count", "limit", "code", "running_count", "failed", "width", "ready"), (7,)),
    **dict.fromkeys(("minutes", "priority", "gpus", "machines", "largest", "index", "need", "free", "at_risk"), (7,)),
    **dict.fromkeys(("starts_by", "found"), ("x", "")),
    "wanted": ("Completed", "Failed", "Ended"),
    "at": (7.0,),
    "gbps": (7, 0),
    "gang": (True, False),
    "total": (7, 0),
    "machine": ("m", ""),
}


def _said(made: object) -> list[str]:
    """A constant, or what a function of `reasons` says for some arguments."""
    if isinstance(made, str):
        return [made]
    assert inspect.isfunction(made)
    names = list(inspect.signature(made).parameters)
    choices = [SAMPLES.get(name, ("x",)) for name in names]
    return [_call(made, dict(zip(names, values, strict=True))) for values in itertools.product(*choices)]


def _call(made: Callable[..., str], values: dict[str, object]) -> str:
    by_name = {name for name, one in inspect.signature(made).parameters.items() if one.kind is one.KEYWORD_ONLY}
    positional = [value for name, value in values.items() if name not in by_name]
    return made(*positional, **{name: values[name] for name in by_name})


@pytest.mark.parametrize(
    ("module", "heading"), [(reasons, "## Reasons"), (reasons_placement, "### Reasons of placement")]
)
def test_every_sentence_of_reasons_is_told_and_no_other(module: ModuleType, heading: str) -> None:
    told = {row[0].strip("`"): row[1] for row in rows(STATES, heading)}
    own = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "annotations"
        if isinstance(value, str) or (inspect.isfunction(value) and value.__module__ == module.__name__)
    }
    assert set(told) == set(own)
    for name, made in own.items():
        templates = [one.strip("` ") for one in told[name].split(" · ")]
        patterns = [re.compile(re.sub("<[a-z_]+>", ".*", re.escape(one))) for one in templates]
        said = _said(made)
        assert [one for one in said if not any(pattern.fullmatch(one) for pattern in patterns)] == []
        assert [p.pattern for p in patterns if not any(p.fullmatch(one) for one in said)] == []


def test_every_variable_that_a_task_is_told_is_in_the_page() -> None:
    told = (ROOT / "worker/stado_worker/shim/task.py").read_text()
    names = set(re.findall(r'"(STADO_[A-Z_]+|RANK|WORLD_SIZE)"', told))
    page = STATES.split("## What a process is told", 1)[1]
    assert len(names) >= 12
    assert {name for name in names if f"`{name}`" not in page} == set()


# ---- docs/worker.md, README.md


def test_every_file_of_an_attempts_folder_is_in_the_page() -> None:
    source = (ROOT / "worker/stado_worker/shim/attempt_dir.py").read_text()
    names = set(re.findall(r'["/]([a-z]+(?:\.(?:json|log))?)"', source)) & {
        *("claim.json", "task.json", "proc.json", "exit.json", "supervisor.log"),
        *("launch", "alive", "pulse", "log", "stop", "follow", "done"),
    }
    assert len(names) == 12
    assert {name for name in names if f"`{name}`" not in WORKER} == set()


def test_every_command_in_the_pages_exists() -> None:
    known = {*COMMANDS, *ALIASES}
    unknown = []
    for path in PAGES:
        for words in re.findall(
            r"(?:^|`|\$ )stado ((?:--?[a-z]+ )*[a-z-]+(?: [a-z-]+)?)", path.read_text(), re.MULTILINE
        ):
            named = [word for word in words.split() if not word.startswith("-")]
            if " ".join(named) not in known and named[0] not in known:
                unknown.append(f"{path.name}: stado {words}")
    assert unknown == []


def test_the_readme_lists_every_exit_code() -> None:
    told = [int(row[0]) for row in rows(README, "## When something goes wrong")]
    assert told == sorted(int(code) for code in Exit)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http") and not (page.parent / target).exists():
            broken.append(target)
    assert broken == []


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\(([a-z-]+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}
    for name in listed:
        text = (folder / name).read_text()
        assert all(
            part in text
            for part in ("**Question.**", "**Choices", "**Argued.**", "**Chosen.**", "**What would change it.**")
        )
