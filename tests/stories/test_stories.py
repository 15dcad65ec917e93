"""Golden stories: for every sentence that is said today, what happened, and the exact history that tells it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from stado_like.job.records import Change
from stado_like.reading.events import events_of
from stado_like.reading.shapes import JobView
from tests.sim.histories import impossible_steps
from tests.stories.stage import Stage

FOLDER = Path(__file__).resolve().parent.parent / "data" / "stories"
STORIES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))
}


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    story = STORIES[request.node.callspec.params["name"]]
    stage = Stage(story.get("machines", 1), story.get("ticks", 5))
    yield stage
    stage.close()


def document(told: dict[str, Any], name: str = "train") -> dict[str, Any]:
    """The spec of a job; `command` is what its task does, `parent` the job it belongs to."""
    spec = dict(told)
    metadata = {"name": name, "workspace": "default", **({"parent": spec.pop("parent")} if "parent" in spec else {})}
    template = {"heartbeat_ttl_seconds": 20, "stop_grace_seconds": 5, **spec.pop("task", {})}
    if "command" in spec:
        words = str(spec.pop("command")).split()
        template |= {"command": words[0], "args": words[1:]}
    if "task_groups" not in spec:
        spec["task_template"] = template
    return {"metadata": metadata, "spec": spec}


def told(change: Change) -> list[Any]:
    """As a story writes it: state, reason, and where there are any, cause and details."""
    details = dict(change.details)
    restart = dict(details.pop("restart", {}))
    restart.pop("cause", None)
    if "restart_at" in details:
        due = datetime.fromisoformat(details.pop("restart_at")).timestamp()
        restart["wait_s"] = round(due - change.at)
    more = {**({"restart": restart} if restart else {}), **details}
    written: list[Any] = [change.state, change.reason]
    if change.cause or more:
        written.append(change.cause)
    return [*written, more] if more else written


@pytest.mark.parametrize("name", STORIES)
def test_history_is_word_for_word(name: str, stage: Stage) -> None:
    story = STORIES[name]
    for other, its in story.get("others", {}).items():
        stage.submit_other(document(its, other))
    stage.submit(document(story["job"]))
    for step in story.get("steps", ()):
        stage.run_to(step["at"])
        if "do" in step:
            stage.do(*step["do"])
        _shows(stage.view(), step.get("shows", {}))
    stage.run_to(story["until"])
    view = stage.view()
    for rank, expected in story["tasks"].items():
        assert [told(one.change) for one in view.tasks[rank].story] == expected
    assert [told(one.change) for one in view.story] == story["history"]
    _shows(view, story.get("shows", {}))
    _in_order(view)
    if view.is_over and story.get("rest", True):
        stage.run_to(story["until"] + 120)
        stage.judge.at_rest()
    stage.judge.verify()


def _shows(view: JobView, wanted: dict[str, Any]) -> None:
    """`job`: state and reason of the job, `tasks`: of some tasks."""
    if "job" in wanted:
        assert [view.state.value, view.reason] == wanted["job"]
    for rank, expected in wanted.get("tasks", {}).items():
        assert [view.tasks[rank].state.value, view.tasks[rank].reason] == expected


def _in_order(view: JobView) -> None:
    for task in view.tasks:
        assert list(impossible_steps([one.change.state for one in task.story])) == []
    for changes in (view.story, *(one.story for one in view.tasks)):
        times = [one.change.at for one in changes]
        assert times == sorted(times)
    events = events_of(view)
    assert len(events) == len(view.story) + sum(len(one.story) for one in view.tasks)
    assert [one.change.at for one in events] == sorted(one.change.at for one in events)
    assert (events[0].rank, events[0].change.reason) == (None, "Run created")
