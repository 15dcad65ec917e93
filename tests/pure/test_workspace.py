"""What a workspace permits: sentence by sentence, by the limits and the grants; and edits as values."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.errors import UsageError
from stado_like.job import keys
from stado_like.job.workspace import Edit, Grants, Quota, Workspace, needs_record, objections, plain_path

T = "task_template"
PLAIN = Workspace(name="default")


def job(template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A stored form, as far as a workspace looks at it."""
    return {
        "metadata": {"name": "a", "workspace": "default"},
        "spec": {T: {"command": "x", **(template or {})}, **spec},
    }


def bind(path: object, kind: str = "Bind") -> dict[str, Any]:
    return {"volumes": [{"kind": kind, "mount_path": "/m", "host_path": path}]}


def test_an_ordinary_job_needs_no_look() -> None:
    for document in (
        job(),
        job(priority=0),
        job(priority=-1000),
        job(bind(None, "EmptyDir")),
        job({"security_context": {"privileged": False, "pid_mode": "private", "cap_add": [], "cap_drop": ["ALL"]}}),
        job({"security_context": {"ulimits": [{"name": "stack", "soft": 1, "hard": 1}]}}),
        job({"network": {"egress": {"default": "deny", "cluster": "namespace"}}}),
        job({"network": {"egress": {"default": "allow", "cluster": "all"}}}),
        job(task_groups=[], array={"size": 5}),
    ):
        assert not needs_record(document)
        assert objections(document, PLAIN) == {}


def test_priority_above_the_cap_says_both_numbers_and_the_command() -> None:
    assert objections(job(priority=10), Workspace(name="lab", max_priority=5)) == {
        "priority": "Must be at most 5, the maximum priority of workspace lab, got 10; an administrator raises it with "
        "stado workspace set lab --max-priority 10"
    }
    assert objections(job(priority=5), Workspace(name="lab", max_priority=5)) == {}
    assert needs_record(job(priority=1))


@pytest.mark.parametrize(
    ("name", "value", "got"),
    [
        ("privileged", True, "true"),
        ("pid_mode", "host", "host"),
        ("ipc_mode", "host", "host"),
        ("cap_add", ["NET_ADMIN"], "a non-empty list"),
        ("security_opt", ["seccomp=unconfined"], "a non-empty list"),
    ],
)
def test_privileged_work_needs_the_grant(name: str, value: object, got: str) -> None:
    document = job({"security_context": {name: value}})
    assert needs_record(document)
    assert objections(document, PLAIN) == {
        f"{T}.security_context.{name}": "Needs privileged work, which workspace default is not granted, got "
        f"{got}; an administrator grants it with stado workspace set default --grant privileged"
    }
    assert objections(document, Workspace(name="default", grants=Grants(privileged=True))) == {}


def test_every_template_is_looked_at_and_every_reason_told_at_once() -> None:
    group = {"name": "ps", T: {**bind("/etc"), "security_context": {"privileged": True, "cap_add": ["ALL"]}}}
    found = objections({"metadata": {}, "spec": {"priority": 1, "task_groups": [{"name": "w", T: {}}, group]}}, PLAIN)
    at = f"task_groups[1].{T}"
    assert set(found) == {
        "priority",
        f"{at}.security_context.privileged",
        f"{at}.security_context.cap_add",
        f"{at}.volumes[0].host_path",
    }


GRANTED = Workspace(name="lab", grants=Grants(bind_paths=("/data", "/scratch/lab")))


@pytest.mark.parametrize("path", ["/data", "/data/", "/data/x/y", "//data//x", "/data/./x", "/scratch/lab/..x"])
def test_a_path_in_a_granted_one_may_be_mounted(path: str) -> None:
    assert objections(job(bind(path)), GRANTED) == {}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/database", "Must lie in a path that workspace lab is granted (/data, /scratch/lab), got the text"),
        ("/", "--bind-path /"),
        ("/scratch", "--bind-path /scratch"),
        ("/scratch/labs", "--bind-path /scratch/labs"),
        ("/scratch/my lab", "--bind-path '/scratch/my lab'"),
        ("/data/../etc", "Must be an absolute path without .."),
        ("/data/..", "Must be an absolute path without .."),
        ("data", "Must be an absolute path without .."),
        ("/data/\x1b[31m", 'got the text "/data/\\u001b[31m"'),
    ],
)
def test_any_other_path_is_refused(path: str, says: str) -> None:
    found = objections(job(bind(path)), GRANTED)
    assert list(found) == [f"{T}.volumes[0].host_path"]
    assert says in found[f"{T}.volumes[0].host_path"]
    assert needs_record(job(bind(path)))


def test_without_any_grant_it_says_so() -> None:
    (sentence,) = objections(job(bind("/etc")), PLAIN).values()
    assert "workspace default is granted (it has none)" in sentence


def test_the_root_grants_everything() -> None:
    assert objections(job(bind("/etc")), Workspace(name="x", grants=Grants(bind_paths=("/",)))) == {}


def test_every_other_worker_is_out_of_reach_whatever_is_granted() -> None:
    document = job({"network": {"egress": {"default": "deny", "cluster": "all"}}})
    free = Workspace(name="x", max_priority=1000, grants=Grants(privileged=True, bind_paths=("/",)))
    assert list(objections(document, free)) == [f"{T}.network.egress.cluster"]
    assert needs_record(document)


def test_paths_are_kept_in_their_shortest_spelling() -> None:
    spelt = {"/a//b/./c/": "/a/b/c", "/": "/", "//": "/", "a": None, "": None, "/a/../b": None, "/a\n": None}
    assert {path: plain_path(path) for path in spelt} == spelt


# ---- edits


def test_an_edit_changes_what_it_names_and_keeps_the_rest() -> None:
    found = Workspace(
        name="lab",
        quota=Quota(max_gpus=8, max_cpus=4, extra={"max_licences": 2}),
        pools={"pool": "a", "site": "b"},
        grants=Grants(bind_paths=("/a", "/b"), extra={"later": True}),
        extra={"note": "kept"},
    )
    edit = Edit(
        quota={"max_gpus": None, "max_running_jobs": 0},
        pools={"zone": "c"},
        no_pools=("site",),
        privileged=True,
        bind_paths=("/c//d", "/b"),
        no_bind_paths=("/a/", "/never"),
    )
    after = edit.of(found)
    assert after.quota == Quota(max_cpus=4, max_running_jobs=0, extra={"max_licences": 2})
    assert (after.max_priority, after.pools) == (0, {"pool": "a", "zone": "c"})
    assert after.grants == Grants(privileged=True, bind_paths=("/b", "/c/d"), extra={"later": True})
    assert after.extra == {"note": "kept"}
    assert Edit().of(found) == found and Edit().is_empty and not edit.is_empty
    back = Edit(quota={"max_running_jobs": None}, no_pools=("zone",), privileged=False, no_bind_paths=("/c/d",))
    assert back.of(after).grants == Grants(bind_paths=("/b",), extra={"later": True})
    again = Edit(bind_paths=("/a",), no_bind_paths=("/a",))
    assert again.of(found).grants.bind_paths == ("/b", "/a")


@pytest.mark.parametrize(
    "wrong",
    [
        {"quota": {"max_gpus": -1}},
        {"quota": {"max_gpus": 1 << 61}},
        {"quota": {"max_disks": 1}},
        {"max_priority": -1},
        {"max_priority": 1001},
        {"bind_paths": ("data",)},
        {"bind_paths": ("/data/../etc",)},
        {"no_bind_paths": ("",)},
    ],
    ids=str,
)
def test_an_edit_out_of_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as told:
        Edit(**wrong)
    assert told.value.next_step


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a.b", "a/b", "a_b", "ü", "x" * 58, "a\n"])
def test_a_name_that_is_none_has_no_key(name: str) -> None:
    with pytest.raises(UsageError):
        keys.workspace(name)
    assert keys.parse_workspace(keys.workspace("x" * 57)) == "x" * 57
