"""Commands on jobs over a directory store, with jobs put there by the real transitions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.builders_jobs import attempt, beat, claim, run
from tests.cli.conftest import Stado


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return os.environ["STADO_STORE"]


@pytest.fixture
def bucket(url: str) -> Bucket:
    return Bucket(open_store(url), ambient=REAL)


def test_submit_prints_the_name_alone(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    said = stado(
        "job", "submit", "-J", "train", "-t", "4:00", "-c", "2", "-m", "16G", "--", "python", "x.py", "--lr", "3"
    )
    assert (said.code, said.out) == (0, "train\n")
    assert said.err.splitlines() == ["time limit: 4 minutes", "memory: 16 GiB per task"]
    job = bucket.job(keys.JobId("default", "train", 1))
    assert job is not None
    template = job.document["spec"]["task_template"]
    assert (template["command"], template["args"]) == ("python", ["x.py", "--lr", "3"])
    assert (template["time_limit_seconds"], template["requested_resources"]["memory_bytes"]) == (240, 16 << 30)
    assert job.document["spec"]["cwd"] == str(tmp_path)
    assert job.submitted_by


def test_submit_without_a_name_makes_one_of_what_it_runs(stado: Stado, url: str) -> None:
    said = stado("submit", "/usr/bin/env", "x")
    assert said.code == 0
    assert said.out.startswith("env-") and len(said.out.strip()) == len("env-") + 6


def test_options_after_the_command_belong_to_it(stado: Stado, bucket: Bucket) -> None:
    assert stado("submit", "-J", "a", "python", "-c", "print(1)", "--json").code == 0
    job = bucket.job(keys.JobId("default", "a", 1))
    assert job is not None and job.document["spec"]["task_template"]["args"] == ["-c", "print(1)", "--json"]


def test_unknown_option_is_not_part_of_the_command(stado: Stado, url: str) -> None:
    """`--ram 8G` silently becomes part of the command: refused, with the nearest known option."""
    said = stado("job", "submit", "--ram", "8G", "--", "true")
    assert said.code == 2
    assert "--memory" in said.err


def test_submit_taken_name_says_what_else(stado: Stado, url: str) -> None:
    assert stado("submit", "-J", "train", "true").code == 0
    said = stado("submit", "-J", "train", "true")
    assert said.code == 4
    assert "--name train-2" in said.err and "job rerun" in said.err


def test_submit_again_under_one_request_id_is_the_same_job(stado: Stado, bucket: Bucket) -> None:
    first = stado("submit", "-J", "train", "--request-id", "r1", "true")
    assert stado("submit", "-J", "train", "--request-id", "r1", "true").out == first.out
    assert len(bucket.store.list("jobs/").rows) == 1
    unnamed = stado("submit", "--request-id", "r2", "true")
    assert stado("submit", "--request-id", "r2", "true").out == unnamed.out
    assert len(bucket.store.list("jobs/").rows) == 2


def test_wrong_fields_are_told_all_at_once_and_nothing_is_written(stado: Stado, tmp_path: Path, url: str) -> None:
    said = stado("--json", "submit", "-J", "a.b", "-p", "5000", "-c", "1", "--", "true")
    assert said.code == 2
    assert said.error["code"] == "VALIDATION_ERROR"
    assert {"metadata.name", "priority", "task_template.requested_resources.memory_bytes"} <= set(said.error["detail"])
    assert not (tmp_path / "store").exists()


def test_dry_run_prints_the_stored_form_and_writes_nothing(stado: Stado, tmp_path: Path, url: str) -> None:
    said = stado("submit", "-J", "a", "--dry-run", "--json", "--", "true")
    assert said.code == 0
    assert said.value["spec"]["task_template"]["restart_policy"] == "OnFailure"
    assert not (tmp_path / "store").exists()


def test_submit_from_a_file_options_win(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(
        "metadata: {name: sft}\nspec:\n  priority: -3\n  task_template: {command: python, args: [a.py]}\n"
    )
    assert stado("submit", "-f", "run.yaml", "-p", "-7", "-e", "A=1").out == "sft\n"
    job = bucket.job(keys.JobId("default", "sft", 1))
    assert job is not None
    assert job.document["spec"]["priority"] == -7
    assert job.document["spec"]["task_template"]["args"] == ["a.py"]
    assert job.document["spec"]["task_template"]["env"] == {"A": "1"}
    assert stado("submit", "-f", "-", "-J", "b", stdin=b'{"spec": {"task_template": {"command": "true"}}}').out == "b\n"
    assert stado("submit", "-f", "absent.yaml").code == 2


def test_env_is_copied_only_when_named(
    stado: Stado, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOKEN", "t")
    (tmp_path / "vars").write_text("# mine\nB=2 = two\n\nTOKEN\n")
    assert stado("submit", "-J", "a", "--env-file", "vars", "-e", "A=1", "true").code == 0
    job = bucket.job(keys.JobId("default", "a", 1))
    assert job is not None
    assert job.document["spec"]["task_template"]["env"] == {"A": "1", "B": "2 = two", "TOKEN": "t"}
    said = stado("submit", "-e", "NOT_SET_HERE", "true")
    assert said.code == 2 and "NOT_SET_HERE" in said.err


def test_deleted_directory_is_one_clear_error(
    stado: Stado, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submitter in a deleted directory has no cwd."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = stado("submit", "true")
    assert said.code == 2
    assert "no longer exists" in said.err and "--workdir" in said.err


def test_show_watch_progress_of_a_job_in_trouble(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    run(bucket, attempt(j), 3, last_lines="boom\nbang")
    shown = stado("job", "show", "train")
    assert shown.code == 0
    assert "Restarted by policy (restart 1/10)" in shown.out and "  | bang" in shown.out
    value = stado("job", "show", "train", "--json").value
    assert value["status"]["state"] == "Pending" and value["tasks"][0]["last_failure"]["log"] == "boom\nbang"
    lines = stado("job", "progress", "train").out.splitlines()
    assert (
        lines[0]
        == "RANK   WORKER                     STATE        MACHINE            ATTEMPT  RESTARTS (F/M/P)        NOTE"
    )
    assert lines[1].startswith(
        "0      train-0                    Pending      -                        2  1/0/0                   "
    )
    assert "previous attempt: failure (Exited with code 3)" in lines[1]
    assert stado("watch", "train").code == 0


def test_wait_exit_codes(stado: Stado, bucket: Bucket) -> None:
    good, bad, going = (build.submit(bucket, name) for name in ("good", "bad", "going"))
    run(bucket, attempt(good))
    run(bucket, attempt(bad), 7, cause=build.Cause.TIME_LIMIT)
    claim(bucket, attempt(going))
    assert stado("job", "wait", "good").code == 0
    assert stado("job", "wait", "good", "bad").code == 1
    said = stado("--json", "job", "wait", "good", "going", "--timeout", "0.2")
    assert (said.code, said.error["code"]) == (124, "TIMED_OUT")
    assert stado("job", "wait", "absent").code == 3


def test_watch_follow_into_a_pipe_tells_changes_and_ends(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    run(bucket, attempt(j), 2, cause=build.Cause.REQUESTED, reason="enough")
    said = stado("watch", "train", "--follow")
    assert said.code == 1
    assert said.out.splitlines()[-1].endswith("train  Cancelled: enough")
    streamed = stado("watch", "train", "--follow", "--json")
    assert streamed.value["state"] == "Cancelled" and streamed.code == 1


def test_logs_raw_text_tail_and_ranks(stado: Stado, bucket: Bucket) -> None:
    body = bytes(range(256)) + b"\nlast\n"
    j = build.submit(bucket)
    run(bucket, attempt(j), log=build.log_tail(body))
    assert stado("logs", "train", "--raw").out_bytes == body
    assert stado("logs", "train").out_bytes == body.decode("utf-8", "replace").encode()
    assert stado("logs", "train", "--tail", "1").out == "last\n"
    piece = stado("logs", "train", "--json").value
    assert (piece["rank"], piece["attempt"], piece["size_bytes"]) == (0, 1, len(body))
    many = build.submit(bucket, "many", array={"size": 2})
    run(bucket, attempt(many, 0), log=build.log_tail(b"a\nb"))
    run(bucket, attempt(many, 1), log=build.log_tail(b"c\n"))
    assert stado("logs", "many").out == "[0] a\n[1] c\n[0] b\n"
    assert stado("logs", "many", "--task", "1").out == "c\n"
    assert stado("logs", "many", "--raw").code == 2
    assert stado("logs", "many", "--task", "9").code == 3
    assert stado("logs", "many", "--follow").out == "[0] a\n[1] c\n[0] b\n"


def test_logs_follow_of_a_cancelled_array_ends_though_ranks_never_ran(stado: Stado, bucket: Bucket) -> None:
    build.submit(bucket, array={"size": 3, "max_parallel": 1})
    assert stado("cancel", "train").code == 0
    assert stado("logs", "train", "-F").code == 0


def test_cancel_by_name_state_and_label(stado: Stado, bucket: Bucket) -> None:
    for name, group in (("a", "x"), ("b", "x"), ("c", "y")):
        build.submit(bucket, name, metadata={"labels": {"group": group}})
    assert stado("cancel", "c", "--reason", "wrong").out == "c: cancelled\n"
    assert stado("cancel", "c").code == 4
    asked = stado("cancel", "--label", "group=x")
    assert asked.code == 2 and "--yes" in asked.err
    said = stado("cancel", "--label", "group=x", "--yes", "--json")
    assert said.code == 0 and {one["name"] for one in said.value} == {"a", "b"}
    assert stado("cancel").code == 2
    build.submit(bucket, "d", metadata={"workspace": "lab"})
    assert stado("cancel", "-w", "lab", "--state", "Pending", "--yes").out == "d: cancelled\n"
    assert stado("cancel", "--state", "nonsense", "--yes").code == 2
    assert stado("job", "show", "c", "--json").value["status"]["reason"] == "wrong"


def test_cancel_of_several_some_over_is_done_in_part(stado: Stado, bucket: Bucket) -> None:
    over, _ = build.submit(bucket, "over"), build.submit(bucket, "going")
    run(bucket, attempt(over))
    said = stado("cancel", "over", "going")
    assert said.code == 6
    assert said.out == "going: cancelled\n" and "default.over.1" in said.err


def test_rerun_takes_the_next_free_name(stado: Stado, bucket: Bucket) -> None:
    build.submit(bucket, resident=True, priority=-4)
    assert stado("job", "rerun", "train").out == "train-2\n"
    assert stado("job", "rerun", "train").out == "train-3\n"
    assert stado("job", "rerun", "train", "--name", "mine").out == "mine\n"
    job = bucket.job(keys.JobId("default", "mine", 1))
    assert job is not None
    assert (job.document["spec"]["resident"], job.document["spec"]["priority"]) == (True, -4)


def test_delete_only_what_ended(stado: Stado, bucket: Bucket) -> None:
    j, going = build.submit(bucket), build.submit(bucket, "going")
    run(bucket, attempt(j))
    assert stado("job", "delete", "going").code == 4
    assert stado("job", "delete", "train").code == 0
    assert stado("job", "show", "train").code == 3
    assert [one["name"] for one in stado("job", "list", "--deleted", "--json").value] == ["train"]
    assert stado("job", "delete", "--state", "Pending", "--yes", "--json").value == []
    assert bucket.job(going) is not None


def test_list_filters_and_shapes(stado: Stado, bucket: Bucket) -> None:
    done, held = build.submit(bucket, "done"), build.submit(bucket, "held", metadata={"labels": {"a": "1"}})
    array = build.submit(bucket, "many", array={"size": 3})
    other = build.submit(bucket, "far", metadata={"workspace": "lab"})
    run(bucket, attempt(done))
    claim(bucket, attempt(held))
    beat(bucket, attempt(held))
    claim(bucket, attempt(array, 1))
    beat(bucket, attempt(array, 1))
    rows = {row["name"]: row for row in stado("job", "list", "--json").value}
    assert set(rows) == {"done", "held", "many", "far"}
    assert list(rows["done"])[:10] == [
        "name",
        "workspace",
        "incarnation",
        "state",
        "reason",
        "priority",
        "created_at",
        "started_at",
        "finished_at",
        "task_counts",
    ]
    assert (rows["done"]["state"], rows["done"]["task_counts"]) == ("Completed", {"Completed": 1})
    assert (rows["held"]["state"], rows["held"]["reason"]) == ("Running", "1 of 1 workers running")
    assert rows["many"]["task_counts"] == {"Running": 1, "Pending": 2}
    assert rows["far"]["reason"] == "No machine fits: no machines are registered"
    assert other.workspace == "lab"

    def names(*words: str) -> set[str]:
        return {row["name"] for row in stado("job", "list", "--json", *words).value}

    assert names("--state", "running") == {"held", "many"}
    assert names("--label", "a=1") == {"held"}
    assert names("-w", "lab") == {"far"}
    assert len(names("--limit", "2")) == 2
    shown = stado("ps").out
    assert "lab/far" in shown and shown.splitlines()[0].split()[:2] == ["JOB", "STATE"]


def test_list_default_leaves_out_old_finished_jobs(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    done, waiting = build.submit(bucket, "done"), build.submit(bucket, "waiting")
    run(bucket, attempt(done))
    for j in (done, waiting):
        path = tmp_path / "store" / keys.job(j)
        os.utime(path, (path.stat().st_mtime - 2 * 86_400,) * 2)
    again = stado("job", "list", "--json").value
    assert [row["name"] for row in again] == ["waiting"]
    assert len(stado("job", "list", "--all", "--json").value) == 2
    assert stado("job", "delete", "--older-than", "1d", "--yes").out == "Deleted done (default.done.1).\n"


def test_list_one_bad_record_is_set_aside(stado: Stado, bucket: Bucket) -> None:
    """One malformed record: the others are listed, the exit code is 6."""
    build.submit(bucket, "good")
    bucket.store.put("jobs/default/bad.1.json", b"{not json")
    bucket.store.put("jobs/default/strange", b"")
    said = stado("job", "list", "--json")
    assert said.code == 6
    assert [row["name"] for row in said.value] == ["good"]
    assert set(said.error["detail"]) == {"default.bad.1", "jobs/default/strange"}


def test_reader_of_a_store_that_does_not_exist_makes_nothing(stado: Stado, url: str, tmp_path: Path) -> None:
    assert stado("job", "list", "--json").value == []
    assert stado("job", "show", "x").code == 3
    assert stado("worker", "list", "--json").value == []
    assert stado("queue", "status", "--json").code == 0
    assert not (tmp_path / "store").exists()


def test_tasks(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket, array={"size": 3})
    claim(bucket, attempt(j, 1))
    beat(bucket, attempt(j, 1))
    assert [row["state"] for row in stado("task", "list", "train", "--json").value] == ["Pending", "Running", "Pending"]
    assert stado("task", "show", "train", "1", "--json").value["worker"] == "w1"
    said = stado("task", "stop", "train", "1-2", "--reason", "not these")
    assert said.code == 0 and said.out == "train-1: is being stopped\ntrain-2: stopped\n"
    assert stado("task", "show", "train", "1", "--json").value["state"] == "Stopping"
    assert stado("task", "stop", "train", "2").code == 4
    assert stado("task", "stop", "train", "3").code == 2
    assert stado("task", "show", "train", "5").code == 3


def test_workers_and_queue(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    build.worker(bucket, "w1")
    build.worker(bucket, "w2", next_by=1.0)
    build.worker(bucket, "w3", accepting=False, why_not="disk")
    rows = {row["worker"]: row for row in stado("worker", "list", "--json").value}
    assert {name: row["state"] for name, row in rows.items()} == {"w1": "Ready", "w2": "Stale", "w3": "Closed"}
    assert stado("worker", "show", "w1", "--json").value["free"]["cpu_cores"] == 4
    assert stado("worker", "show", "w9").code == 3
    build.submit(bucket)
    value = stado("queue", "status", "--json").value
    assert (
        value["indexes"]["open"]["count"] == 1 and value["indexes"]["open"]["oldest"] == "default.train.1.00000.000001"
    )
    assert value["workers"] == {"ready": 1, "stale": 1, "closed": 1}
    assert value["last_tick"] == {"at": None, "age_s": None}


def test_stats_tell_a_finished_job_cost_four_requests(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    run(bucket, attempt(j))
    said = stado("job", "show", "train", "--stats")
    assert "store requests: 4 (" in said.err


def test_help_of_every_command_of_ours(stado: Stado) -> None:
    from stado_cli.main import COMMANDS

    for full in COMMANDS:
        assert stado(*full.split(), "--help").code == 0, full
