"""Credentials and configs at the paths a run asks for: never over something, shared by the living, removed of the dead.

Attempts are real processes here: whether one lives is a lock that its process holds.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stado_like.job.keys import AttemptId
from stado_worker.secrets import placing, private
from stado_worker.secrets.deliver import deliver
from stado_worker.secrets.masking import Masks
from stado_worker.secrets.placing import place, remove_left_behind, remove_of_the_dead, remove_placed
from stado_worker.secrets.records import Records
from stado_worker.secrets.table import Table
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.preparing import CouldNotPrepare, GivenUp
from tests import builders_jobs as build

SECRET = {"token": b"hf_the_value", "other": b"\0\xff"}


@dataclass
class Living:
    """An attempt whose supervisor is a process that waits until it is killed."""

    folder: AttemptDir
    pid: int
    said: str

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0

    def end(self) -> None:
        """As a supervisor in good order: what it placed goes while it still lives."""
        remove_placed(self.folder.path)
        self.kill()


@dataclass
class Host:
    folder: Path
    started: list[Living] = field(default_factory=list)

    @property
    def attempts(self) -> Path:
        return self.folder / "state" / "w1" / "attempts"

    def attempt(self, rank: int, state: str = "state") -> AttemptDir:
        return AttemptDir.make(self.folder / state / "w1" / "attempts", f"default.train.1.{rank:05d}.000001")

    def start(
        self, rank: int, *, secrets: Mapping[str, Any] | None = None, state: str = "state", **files: str
    ) -> Living:
        """An attempt that places `files` (path below this host's root -> text) and lives on."""
        folder = self.attempt(rank, state)
        configs = [{"mounts": [self.path(path)], "value": text} for path, text in files.items()]
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            said = "bug"
            try:
                os.close(read_end)
                folder.take_alive()
                place(folder, str(self.folder), {self.path(at): got for at, got in (secrets or {}).items()}, configs)
                said = ""
            except CouldNotPrepare as refused:
                said = refused.message
            finally:
                os.write(write_end, said.encode())
                os.close(write_end)
                while True:
                    signal.pause()
        os.close(write_end)
        with os.fdopen(read_end) as answer:
            said = answer.read()
        living = Living(folder, pid, said.replace(str(self.folder) + "/", ""))
        self.started.append(living)
        return living

    def path(self, path: str) -> str:
        return str(self.folder / path)

    def seen(self) -> set[str]:
        """Everything but the workers' own."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        return {path for path in found if not path.startswith(("state", "other", "shm"))}

    def kept(self) -> list[Path]:
        """Copies of attempts, wherever."""
        every = [*self.folder.glob("*/w1/attempts/*/*/*"), *self.folder.glob("shm/*/*/*")]
        return [path for path in every if path.name != private.OF]


@pytest.fixture(params=["memory", "disk"])
def host(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(private, "MEMORY", tmp_path / "shm")
    monkeypatch.setattr(private, "LAST_SERVICE_UID", os.geteuid() if request.param == "memory" else -1)
    made = Host(tmp_path)
    yield made
    for living in made.started:
        living.kill()


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_secret_is_a_directory_of_ours_with_a_file_per_key_and_config_a_file_nobody_may_write(host: Host) -> None:
    living = host.start(0, secrets={"run/keys": SECRET}, **{"etc/app/app.conf": "a = 1\n"})
    assert living.said == ""
    assert (mode(host.path("run/keys")), mode(host.path("run/keys/token"))) == (0o700, 0o400)
    assert {one.name: one.read_bytes() for one in (host.folder / "run/keys").iterdir()} == SECRET
    assert mode(host.path("etc/app/app.conf")) == 0o444
    assert Path(host.path("etc/app/app.conf")).read_text() == "a = 1\n"
    place_of_values = Path(os.readlink(host.path("run/keys")))
    assert mode(place_of_values.parent) == 0o700
    living.end()
    assert (host.seen(), host.kept()) == (set(), []), "and the directories that were made for it"
    remove_placed(living.folder.path)


def test_two_tasks_of_one_job_share_a_path_and_the_last_one_removes_it(host: Host) -> None:
    files = {"etc/app.conf": "a = 1\n"}
    first, second, third = (host.start(rank, secrets={"run/keys": SECRET}, **files) for rank in range(3))
    assert (first.said, second.said, third.said) == ("", "", "")
    for one in (first, third):
        one.end()
        assert Path(host.path("etc/app.conf")).read_text() == "a = 1\n"
        assert Path(host.path("run/keys/token")).read_bytes() == SECRET["token"]
    second.end()
    assert (host.seen(), host.kept()) == (set(), [])


def test_path_that_a_living_attempt_uses_with_other_content_fails_the_task(host: Host) -> None:
    first = host.start(0, secrets={"run/keys": SECRET}, **{"app.conf": "a = 1\n"})
    refused = host.start(1, **{"app.conf": "a = 2\n"})
    name = first.folder.attempt_id
    assert refused.said == f"Writing config app.conf: {name}, which still runs, uses it with other content"
    assert host.start(2, secrets={"run/keys": {"token": b"x"}}).said.endswith("uses it with other content")
    first.kill()
    again = host.start(3, secrets={"run/keys": {"token": b"x"}}, **{"app.conf": "a = 2\n"})
    assert again.said == "", "the dead use nothing"
    assert Path(host.path("app.conf")).read_text() == "a = 2\n"
    assert os.listdir(host.path("run/keys")) == ["token"]
    remove_left_behind(first.folder.path)
    assert Path(host.path("app.conf")).read_text() == "a = 2\n", "what the dead left is no longer theirs to remove"
    again.end()
    assert host.seen() == set()


@pytest.mark.parametrize("what", ["file", "directory", "link", "broken link"])
def test_what_is_there_is_never_overwritten_nor_removed(host: Host, what: str) -> None:
    there = host.folder / "app.conf"
    make: dict[str, Callable[[], object]] = {
        "file": lambda: there.write_text("mine"),
        "directory": there.mkdir,
        "link": lambda: there.symlink_to("/etc/hosts"),
        "broken link": lambda: there.symlink_to("/nowhere/attempts/x/placed/0/and/on"),
    }
    make[what]()
    before = os.lstat(there)
    living = host.start(0, **{"app.conf": "theirs", "new/other.conf": "x"})
    assert living.said == "Writing config app.conf: it exists, and nothing is overwritten"
    living.end()
    assert os.lstat(there).st_ino == before.st_ino
    assert host.seen() == {"app.conf"}


def test_path_that_cannot_be_made_says_why(host: Host) -> None:
    (host.folder / "file").write_text("")
    assert host.start(0, **{"file/below/app.conf": "x"}).said == "Writing config file/below/app.conf: Not a directory"
    name = "n" * 300
    assert host.start(1, **{name: "x"}).said == f"Writing config {name}: File name too long"
    (host.folder / "file").unlink()
    for living in host.started:
        living.end()
    assert host.seen() == set()


def test_leftovers_of_a_killed_supervisor_are_removed_by_the_agent(host: Host) -> None:
    dead = host.start(0, secrets={"run/keys": SECRET}, **{"etc/app/app.conf": "a"})
    beside = host.start(1, **{"etc/app/other.conf": "b"})
    private.keep_masks(dead.folder.path, Masks.of([b"hf_the_value"]))
    dead.kill()
    assert Path(host.path("run/keys/token")).exists()
    remove_placed(dead.folder.path)
    assert host.seen() == {"etc", "etc/app", "etc/app/other.conf"}
    assert private.masks_of(dead.folder.path, [{}]) is not None, "the log may still have to be sent"
    remove_left_behind(dead.folder.path)
    remove_left_behind(dead.folder.path)
    assert private.masks_of(dead.folder.path, [{}]) is None
    beside.end()
    assert (host.seen(), host.kept()) == (set(), []), "the directory made for the first goes with the last"


def test_next_start_of_the_worker_removes_what_the_dead_left_and_spares_the_living(host: Host) -> None:
    dead = host.start(0, secrets={"run/keys": SECRET}, **{"a.conf": "a", "shared.conf": "s"})
    living = host.start(1, **{"b.conf": "b", "shared.conf": "s"})
    dead.kill()
    remove_of_the_dead(host.attempts)
    assert host.seen() == {"b.conf", "shared.conf"}
    assert Path(host.path("shared.conf")).read_text() == "s", "the link leads to the living one's copy"
    dead.folder.write_done({})
    remove_of_the_dead(host.attempts)
    remove_left_behind(dead.folder.path)
    living.end()
    assert (host.seen(), host.kept()) == (set(), [])


def test_after_a_restart_of_the_machine_links_without_records_or_memory_are_taken_over(host: Host) -> None:
    """Memory is empty, and the records may be gone: the link itself says that it was ours."""
    dead = host.start(0, secrets={"run/keys": SECRET}, **{"a.conf": "a"})
    dead.kill()
    for path in (*host.folder.glob("shm/*/*/*/*"), *host.folder.glob("state/.placed/*/*.json")):
        path.unlink()
    for path in sorted(host.folder.glob("shm/**/*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    again = host.start(1, secrets={"run/keys": SECRET}, **{"a.conf": "a"})
    assert again.said == ""
    assert Path(host.path("run/keys/token")).read_bytes() == SECRET["token"]
    again.end()
    assert host.seen() == {"run"}, "a directory of which no record is left"


def test_worker_with_another_state_directory_is_told_by_the_link(host: Host) -> None:
    first = host.start(0, secrets={"run/keys": SECRET}, **{"a.conf": "a"})
    for asked in ({"files": {"a.conf": "a"}}, {"secrets": {"run/keys": SECRET}}):
        other = host.start(1, state="other", secrets=asked.get("secrets"), **asked.get("files", {}))  # type: ignore[arg-type]
        assert other.said.endswith(f"{first.folder.attempt_id}, which still runs, uses it")
        other.end()
    first.end()
    assert host.seen() == set()


def test_one_run_that_asks_for_a_path_twice(host: Host) -> None:
    folder = host.attempt(0)
    same = [{"mounts": [host.path("a"), host.path("./a"), "a"], "value": "x"}]
    place(folder, str(host.folder), {}, same)
    assert Path(host.path("a")).read_text() == "x"
    remove_placed(folder.path)
    for configs, secrets, why in (
        ([*same, {"mounts": ["a"], "value": "y"}], {}, "the run asks for it twice, with different content"),
        ([{"mounts": ["keys/a"], "value": "y"}], {host.path("keys"): SECRET}, f"it lies inside {host.path('keys')}"),
    ):
        with pytest.raises(CouldNotPrepare) as refused:
            place(folder, str(host.folder), secrets, configs)
        assert refused.value.message.endswith(why)
    with pytest.raises(CouldNotPrepare, match="the working directory /nowhere does not exist"):
        place(folder, "/nowhere", {}, [{"mounts": ["a"], "value": "y"}])
    assert host.seen() == set()


def test_config_inside_a_directory_of_anothers_credentials_is_refused(host: Host) -> None:
    living = host.start(0, secrets={"run/keys": SECRET})
    assert host.start(1, **{"run/keys/mine": "x"}).said == (
        "Writing config run/keys/mine: it lies inside what a run was given"
    )
    assert set(os.listdir(host.path("run/keys"))) == set(SECRET)
    living.end()


def test_path_that_was_replaced_meanwhile_is_left_alone(host: Host) -> None:
    living = host.start(0, **{"a.conf": "a"})
    os.unlink(host.path("a.conf"))
    Path(host.path("a.conf")).write_text("a person's")
    assert "it is no longer what was placed there" in host.start(1, **{"a.conf": "a"}).said
    living.end()
    assert Path(host.path("a.conf")).read_text() == "a person's"


def test_task_that_removed_its_own_folder_leaves_no_link(host: Host) -> None:
    living = host.start(0, secrets={"run/keys": SECRET}, **{"a.conf": "a"})
    placing._remove_tree(living.folder.path)
    living.kill()
    remove_left_behind(living.folder.path)
    assert (host.seen(), host.kept()) == (set(), [])


@pytest.mark.parametrize("stopped_at", [1, 2])
def test_preparation_that_is_stopped_leaves_nothing(host: Host, stopped_at: int) -> None:
    """Also when the stop comes while it places, after whoever ends the attempt has cleared up."""
    folder = host.attempt(0)
    (host.folder / "state" / "config.toml").write_text(f'[secrets]\ntoken = "file:{host.folder}/state/token"\n')
    (host.folder / "state" / "token").write_bytes(SECRET["token"])
    shipping = LogShipping(build.make_bucket(build.Clock()), AttemptId.parse(folder.attempt_id), folder.log, masks=None)
    asked: list[float] = []

    def pause(seconds: float) -> bool:
        asked.append(seconds)
        return len(asked) >= stopped_at

    refs = [{"external_secret_name": "token", "mount_path": host.path("run/keys")}]
    configs = [{"mounts": ["a.conf"], "value": "a"}]
    table = Table(host.folder / "state" / "config.toml")
    with pytest.raises(GivenUp):
        deliver(folder, refs, configs, str(host.folder), shipping, print, pause, table)
    assert (len(asked), host.seen(), host.kept()) == (stopped_at, set(), [])
    given = deliver(folder, refs, configs, str(host.folder), shipping, print, lambda _: False, table)
    assert (given.env, given.notes, shipping.masks and shipping.masks.values) == ({}, (), (SECRET["token"],))
    assert (host.folder / "run/keys/value").read_bytes() == SECRET["token"]


CHANGES = ("mkdir", "symlink", "replace", "unlink", "rmdir", "open")


def killed_at(count: int, work: Callable[[], object]) -> bool:
    """Do `work` in a process that is killed before its `count`-th change of the disk. False: it came to its end."""
    pid = os.fork()
    if pid == 0:
        left = iter(range(count - 1))

        def dying(change: Callable[..., Any]) -> Callable[..., Any]:
            def done(*words: Any, **more: Any) -> Any:
                if next(left, None) is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                return change(*words, **more)

            return done

        for name in CHANGES:
            setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("host", ["memory"], indirect=True)
@pytest.mark.parametrize("when", ["placing", "removing"])
def test_killed_at_any_change_leaves_nothing_that_is_not_removed(host: Host, when: str) -> None:
    folder = host.attempt(0)
    configs = [{"mounts": [f"etc/app/{name}.conf" for name in "abc"], "value": "a"}]
    secrets = {host.path("run/keys"): SECRET}
    count, goes_on = 0, True
    while goes_on:
        count += 1
        if when == "removing":
            place(folder, str(host.folder), secrets, configs)
            goes_on = killed_at(count, lambda: remove_left_behind(folder.path))
        else:
            goes_on = killed_at(count, lambda: place(folder, str(host.folder), secrets, configs))
        if count % 2:  # the agent comes first, or the next attempt does
            remove_left_behind(folder.path)
            assert (count, host.seen(), host.kept()) == (count, set(), [])
        following = host.start(count, secrets={"run/keys": SECRET}, **{"etc/app/a.conf": "b"})
        assert (count, following.said) == (count, "")
        remove_left_behind(folder.path)
        assert Path(host.path("etc/app/a.conf")).read_text() == "b"
        following.end()
        assert (count, host.seen(), host.kept()) == (count, set(), [])
    assert count > 10


def test_nothing_is_made_for_attempts_that_place_nothing(host: Host) -> None:
    folder = host.attempt(0)
    place(folder, "/nowhere", {}, [])
    remove_left_behind(folder.path)
    remove_of_the_dead(host.attempts)
    assert list(folder.path.iterdir()) == []
    assert not (host.folder / "state" / ".placed").exists()


def test_memory_that_is_anothers_is_not_used(host: Host) -> None:
    host.folder.joinpath("shm", f"stado-{os.geteuid()}").mkdir(mode=0o755)
    living = host.start(0, secrets={"run/keys": SECRET})
    assert Path(os.readlink(host.path("run/keys"))).is_relative_to(living.folder.path)
    assert mode(Path(os.readlink(host.path("run/keys"))).parent) == 0o700
    living.end()
    assert host.kept() == []


def test_records_held_by_another_for_too_long_are_trouble_of_the_machine(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stado_worker.secrets.records.LOCKED_WITHIN_S", 0.05)
    folder = host.attempt(0)
    with Records.of(folder.path).locked(), pytest.raises(TimeoutError, match=r"lock is held for more than 0.05 s"):
        place(folder, str(host.folder), {}, [{"mounts": ["a"], "value": "x"}])
