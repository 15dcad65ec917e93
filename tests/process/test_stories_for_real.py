"""Some of the golden stories once more, with a real worker, real processes and real signals: the same histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stado_like.bucket import cancel
from stado_like.job.keys import AttemptId, JobId
from stado_like.reading.view import read_job
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial

STORIES = Path(__file__).resolve().parent.parent / "data" / "stories"
NEVER = {"restart_policy": "Never"}

SCRIPTS: dict[str, tuple[str, dict[str, Any]]] = {
    "completes": ("exit 0", {}),
    "fails_for_good": ("exit 3", NEVER),
    "is_restarted_by_policy": ("test $STADO_ATTEMPT = 2 || exit 3", {}),
    "exits_137_by_itself": ("exit 137", NEVER),
    "exits_143_outside_a_stop": ("exit 143", NEVER),
    "is_killed_by_a_signal": ("kill -SEGV $$", NEVER),
    "cancelled_while_it_runs": ("sleep 307.7", {}),
    "cancelled_for_a_reason": ("sleep 307.7", {}),
    "worker_stopped_for_a_reason": ("sleep 307.7", {}),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_real_process_has_the_same_history(shared: Rig, name: str) -> None:
    story = yaml.safe_load((STORIES / f"{name}.yaml").read_text())
    script, task = SCRIPTS[name]
    j = shared.submit(name.replace("_", "-"), script, task=task)
    for step in story.get("steps", ()):
        shared.running(j)
        _do(shared, j, *step["do"])
    shared.last(j)
    until(lambda: read_job(shared.bucket, j).is_over, 10, "readers see that it is over")
    view = read_job(shared.bucket, j)
    assert [[one.change.state, one.change.reason] for one in view.tasks[0].story] == [
        line[:2] for line in story["tasks"][0]
    ]
    here = {"train-0": f"{j.name}-0", "on h1": "on w1"}
    wanted = [line[:2] for line in story["history"]]
    for name_there, name_here in here.items():
        wanted = [[state, reason.replace(name_there, name_here)] for state, reason in wanted]
    assert [[one.change.state, one.change.reason] for one in view.story] == wanted
    assert shared.bucket.end(AttemptId(j, 0, view.tasks[0].attempt)) is not None


def _do(rig: Rig, j: JobId, word: str, *values: Any) -> None:
    if word == "cancel":
        cancel.cancel_job(rig.bucket, j, reason=values[0] if values else "", by="ann")
    else:
        assert word == "stop"
        rank, *reason = values
        cancel.stop_task(rig.bucket, j, rank, reason=reason[0] if reason else "", by="ann")
