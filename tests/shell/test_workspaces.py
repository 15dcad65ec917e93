"""Workspaces in a bucket: edits at once lose nothing, lost answers are read back, ordinary submits ask nothing more."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stado_like import Client
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.editing import TRIES
from stado_like.bucket.workspaces import Workspaces
from stado_like.errors import BadRecord, Conflict, InvalidSpecification, NewerRecord, Refused, StoreUnavailable
from stado_like.job import keys
from stado_like.job.workspace import Edit, Workspace
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import Unknown, Write
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.builders_jobs import Clock

KEY = keys.workspace("lab")


class Interrupted(MemoryStore):
    """A memory store whose next writes meet what a test chose: `before` runs ahead of a replace, `before_create` ahead
    of a create, `lost` swallows the answer of that many replaces, `replaces` is what the probe found.
    """

    before: Callable[[], None] | None = None
    before_create: Callable[[], None] | None = None
    lost = 0
    arrives = True
    replaces = True

    @property
    def can_replace(self) -> bool:
        return self.replaces

    def create(self, key: str, body: bytes) -> Write:
        before, self.before_create = self.before_create, None
        if before is not None:
            before()
        return super().create(key, body)

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        if key != KEY:
            return super().replace(key, body, etag)
        before, self.before = self.before, None
        if before is not None:
            before()
        if self.lost:
            self.lost -= 1
            if self.arrives:
                super().replace(key, body, etag)
            return Unknown("a reset")
        return super().replace(key, body, etag)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Interrupted:
    return Interrupted(request.node.nodeid)


CLOCK = Clock()


def room(store: MemoryStore, who: str = "ann") -> Workspaces:
    return Workspaces(Bucket(store, ambient=CLOCK, budget_s=1.0), lambda: None, lambda: who)


def test_never_set_is_the_defaults(store: Interrupted) -> None:
    assert room(store).read("lab") == Workspace(name="lab")
    assert not room(store).read("lab").was_set
    assert room(store).every() == ([], {})


def test_two_editors_at_once_lose_nothing(store: Interrupted) -> None:
    room(store).edit("lab", Edit(max_priority=1))
    other = room(store, "bob")
    store.before = lambda: void(other.edit("lab", Edit(quota={"max_gpus": 8}, pools={"b": "2"})))
    done = room(store).edit("lab", Edit(pools={"a": "1"}))
    assert done == room(store).read("lab")
    assert (done.max_priority, done.quota.max_gpus, done.pools) == (1, 8, {"a": "1", "b": "2"})


def test_many_editors_of_a_directory_lose_nothing(tmp_path: Path) -> None:
    """Real time, real files, four threads with a store of their own each."""

    def edit(who: int) -> None:
        own = Workspaces(Bucket(open_store(f"file://{tmp_path}/store?durable=0")), lambda: None, lambda: str(who))
        for n in range(5):
            own.edit("lab", Edit(pools={f"p{who}-{n}": "x"}, bind_paths=(f"/{who}/{n}",)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(edit, range(4)))
    done = Workspaces(Bucket(open_store(f"file://{tmp_path}/store")), lambda: None, str).read("lab")
    assert sorted(done.pools) == sorted(f"p{who}-{n}" for who in range(4) for n in range(5))
    assert len(done.grants.bind_paths) == 20


def void(_: object) -> None:
    """A callable for its effect."""


def test_two_first_editors_at_once_lose_nothing(store: Interrupted) -> None:
    """Neither found a record: one creates it, the other replaces what it created."""
    other = room(store, "bob")
    store.before_create = lambda: void(other.edit("lab", Edit(quota={"max_gpus": 8})))
    done = room(store).edit("lab", Edit(max_priority=5))
    assert (done.max_priority, done.quota.max_gpus, done.by) == (5, 8, "ann")


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_is_read_back(store: Interrupted, arrives: bool) -> None:
    room(store).edit("lab", Edit(max_priority=1))
    store.lost, store.arrives = 3, arrives
    done = room(store).edit("lab", Edit(max_priority=7))
    assert done.max_priority == 7 == room(store).read("lab").max_priority
    assert store.lost == (2 if arrives else 0)


def test_no_answer_at_all_is_no_success(store: Interrupted) -> None:
    room(store).edit("lab", Edit(max_priority=1))
    store.lost, store.arrives = 10_000, False
    with pytest.raises(StoreUnavailable, match=f"asked {TRIES} times; last: a reset"):
        room(store).edit("lab", Edit(max_priority=7))
    assert room(store).read("lab").max_priority == 1


def test_an_editor_who_is_always_overtaken_says_so(store: Interrupted) -> None:
    room(store).edit("lab", Edit(max_priority=1))
    other = room(store, "bob")

    def again() -> None:
        found = store.get(KEY)
        assert found is not None
        store.put(KEY, found.body.replace(b'"at":', b'"at" :') if b'"at":' in found.body else found.body + b" ")
        store.before = again

    store.before = again
    with pytest.raises(Conflict, match="edited by others"):
        other.edit("lab", Edit(max_priority=7))


def test_a_store_without_replace_creates_once_and_refuses_the_edit(store: Interrupted) -> None:
    store.replaces = False
    assert room(store).edit("lab", Edit(max_priority=3)).max_priority == 3
    with pytest.raises(Conflict, match="cannot replace") as told:
        room(store).edit("lab", Edit(max_priority=4))
    assert f"stado storage rm {KEY}" in told.value.next_step
    assert room(store).read("lab").max_priority == 3


def test_what_an_editor_does_not_know_it_keeps(store: Interrupted) -> None:
    store.put(KEY, b'{"v":1,"name":"lab","nonce":"n","quota":{"max_disks":3},"new":[1]}')
    done = room(store).edit("lab", Edit(max_priority=3))
    assert (done.quota.extra, done.extra) == ({"max_disks": 3}, {"new": [1]})
    assert room(store).read("lab") == done


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{not json", BadRecord),
        (b'{"v":1,"name":"lab","max_priority":"high"}', BadRecord),
        (b'{"v":2,"name":"lab"}', NewerRecord),
    ],
)
def test_a_record_that_cannot_be_read_is_neither_defaults_nor_overwritten(
    store: Interrupted, body: bytes, kind: type[BadRecord]
) -> None:
    store.put(KEY, body)
    store.put(f"{keys.WORKSPACES}No.json", b"{}")
    with pytest.raises(kind):
        room(store).edit("lab", Edit(max_priority=3))
    document = {"metadata": {"workspace": "lab"}, "spec": {"priority": 1, "task_template": {}}}
    with pytest.raises(kind):
        room(store).permit(document)
    found = store.get(KEY)
    assert found is not None and found.body == body
    room(store).edit("good", Edit(max_priority=3))
    listed, unread = room(store).every()
    assert [one.name for one in listed] == ["good"]
    assert set(unread) == {KEY, f"{keys.WORKSPACES}No.json"}


def test_a_record_stays_small(store: Interrupted) -> None:
    paths = tuple(f"/{n}/{'x' * 1000}" for n in range(70))
    with pytest.raises(Refused, match="65536 is the most"):
        room(store).edit("lab", Edit(bind_paths=paths))
    assert store.get(KEY) is None


# ---- submitting


def submitter(store: MemoryStore, clock: Clock) -> tuple[Client, Meter]:
    meter = Meter()
    metered = MeteredStore(store, meter)
    return Client(store.url, opened=metered, ambient=clock, workspace="lab"), meter


def cost(client: Client, meter: Meter, **spec: Any) -> dict[str, int]:
    before = meter.snapshot()
    client.submit(command=["true"], **spec)
    return dict((meter.snapshot() - before).counts)


def test_an_ordinary_submit_asks_nothing_more(store: Interrupted) -> None:
    client, meter = submitter(store, Clock())
    client.workspaces.edit("lab", Edit(max_priority=5, quota={"max_gpus": 1}))
    cost(client, meter, name="first")  # finds no bell to replace yet
    plain = cost(client, meter, name="a")
    assert cost(client, meter, name="b", priority=-5) == plain
    asking = cost(client, meter, name="c", priority=5)
    assert asking == {**plain, "get": plain["get"] + 1}


def test_what_is_refused_writes_nothing(store: Interrupted) -> None:
    client, meter = submitter(store, Clock())
    with pytest.raises(InvalidSpecification) as told:
        client.submit(command=["true"], name="a", priority=6)
    assert list(told.value.detail) == ["priority"]
    assert store.list("").rows == ()
    assert meter.snapshot().counts == {"get": 2}  # what the cluster says of restarts, and the workspace
    client.workspaces.edit("lab", Edit(max_priority=6))
    job = client.submit(command=["true"], name="a", priority=6)
    client.workspaces.edit("lab", Edit(max_priority=5))
    with pytest.raises(InvalidSpecification):
        client.rerun(job)
    with pytest.raises(InvalidSpecification):
        client.rerun(job, "other")
    assert [row.key for row in store.list("jobs/").rows] == ["jobs/lab/a.1.json"]


def test_fsck_knows_workspaces(store: Interrupted) -> None:
    from stado_like.fsck.check import check

    bucket = build.make_bucket(Clock())
    Workspaces(bucket, lambda: None, str).edit("lab", Edit(max_priority=5))
    assert check(bucket, audit=True, settle_s=0).findings == []
    bucket.store.put(keys.workspace("other"), b'{"v":1,"name":"lab"}')
    bucket.store.put(keys.workspace("bad"), b"{")
    bucket.store.put(f"{keys.WORKSPACES}No.json", b"{}")
    found = {(one.code, one.key) for one in check(bucket, audit=True, settle_s=0).findings}
    assert {("record-elsewhere", keys.workspace("other")), ("record-unreadable", keys.workspace("bad"))} < found
    assert ("foreign-key", f"{keys.WORKSPACES}No.json") in found
    assert [one.code for one in check(bucket, settle_s=0).findings] == ["foreign-key"]
