"""What a worker offers: its labels, and which tasks keep their like away; also after its agent was started again."""

from __future__ import annotations

from pathlib import Path

from stado_like.bucket import entries
from stado_like.job import keys, reasons
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim
from stado_like.job.terms import Ask
from stado_like.job.wanted import Wanted
from stado_like.planning.fit import why_not
from stado_worker import recovery
from stado_worker.holdings import keep_claim
from stado_worker.machine.room import LiveRoom, Total
from stado_worker.offer import Offer
from stado_worker.shim.attempt_dir import AttemptDir
from tests.builders_jobs import Clock, make_bucket, submit
from tests.sim.host import _Idle

GIB = 1 << 30
A = AttemptId(JobId("default", "run", 1), 0, 1)
PICKY = Ask(
    1000, GIB, 0, names=("w1", "w2"), labels={"pool": "a"}, apart="default.run/", needs={"container": "no containers"}
)


def offer(tmp_path: Path) -> Offer:
    room = LiveRoom(Total(4000, 8 * GIB), 0.0, cpus_given=True, memory_given=True, sampler=_Idle(4))
    return Offer("w1", "h1", room, Clock(), tmp_path, labels={"pool": "a"})


def test_task_that_keeps_apart_keeps_its_like_off_the_machine(tmp_path: Path) -> None:
    here, folder = offer(tmp_path), AttemptDir.make(tmp_path, str(A))
    apart = Ask(1000, GIB, 0, labels={"pool": "a"}, apart="default.run/")
    assert why_not(here.machine([]), apart) == ()
    held = here.machine([(folder, apart)])
    assert why_not(held, apart) == ("another worker of this run is already on the machine",)
    assert why_not(held, Ask(1000, GIB, 0, apart="default.other/")) == ()
    assert why_not(held, Ask(1000, GIB, 0, labels={"pool": "b"})) == ("machine lacks label pool=b",)
    assert why_not(held, PICKY)[-1] == "no containers"


def test_ask_of_a_held_attempt_survives_its_agent(tmp_path: Path) -> None:
    folder = AttemptDir.make(tmp_path, str(A))
    claim = Claim(nonce="n", attempt=str(A), worker="w1", boot_id="b")
    keep_claim(folder, claim, b"{}", PICKY, 1.0, "b", fsync=False)
    (holding,) = recovery.look_through(tmp_path, "b", lambda name: False, lambda line: None).holdings
    assert holding.ask == PICKY


def test_entry_says_the_whole_ask_of_its_ranks_group() -> None:
    bucket = make_bucket(Clock())
    groups = [
        {"name": name, "task_template": {"command": "x", "requested_resources": asked}}
        for name, asked in (
            ("a", {"machines": 2}),
            ("b", {"node_selection": {"mode": "Any", "names": ["w1"], "match_labels": {"pool": "a"}}}),
        )
    ]
    j = submit(bucket, "run", task_groups=groups)
    job = bucket.job(j)
    assert job is not None
    terms = bucket.terms(job)
    for rank, (apart, names) in enumerate((("default.run/a", ()), ("default.run/a", ()), ("", ("w1",)))):
        ask = entries.ask_in(entries.record(terms, keys.AttemptId(j, rank, 1)))
        assert (ask.apart, ask.names, ask) == (apart, names, terms.for_rank(rank).ask)


def test_machine_that_starts_no_process_ten_times_running_fences_itself_and_says_why(tmp_path: Path) -> None:
    """Job loops for ever on one bad host: it rests longer each time, and after the tenth it takes nothing more."""
    here, now_s = offer(tmp_path), 1000.0
    here.sample(now_s, [])
    for times in range(1, 10):
        here.note_delivery(now_s, delivered=False, why="No process could be started")
        assert why_not(here.machine([]), Ask(1000, GIB, 0, labels={"pool": "a"})) == (
            f"machine does not accept runs: no process could be started here, {times} times in a row",
        )
        now_s += 60.0
        here.sample(now_s, [])
        assert not here.closed
    here.note_delivery(now_s, delivered=False, why="No process could be started")
    now_s += 86_400.0
    here.sample(now_s, [])
    told = reasons.fenced_itself(10, "No process could be started")
    assert told.startswith("no process could be started here, 10 times in a row; the last: ")
    said = here.capacity(1.0, [], (), accepting=True)
    assert (said.accepting, said.why_not) == (False, told)
    assert why_not(here.machine([]), Ask(1000, GIB, 0, labels={"pool": "a"})) == (
        f"machine does not accept runs: {told}",
    )
    here.wants(Wanted(nonce="a person says that it is well"))
    assert here.capacity(1.0, [], (), accepting=True).accepting


def test_one_process_that_starts_ends_the_row(tmp_path: Path) -> None:
    here = offer(tmp_path)
    for _ in range(3):
        for _ in range(9):
            here.note_delivery(1000.0, delivered=False)
        here.note_delivery(1000.0, delivered=True)
    here.sample(2000.0, [])
    assert not here.closed
