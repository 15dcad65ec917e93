"""One campaign: a store, four machines, two coordinators, people; trouble for some minutes; then everything is healed,
comes to rest, and is judged.

    store (SeaweedFS behind a lossy proxy, or a directory)  →  cluster, people, watcher  →  a fault a second
    →  heal, drain  →  one tick, fsck --audit  →  history
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreError
from stado_like.job import codec
from stado_like.job.keys import AttemptId
from stado_like.job.records import End
from stado_like.reading.view import read_job
from stado_like.store.url import open_store
from stado_worker.shim import report
from tests.chaos.cluster import Cluster
from tests.chaos.faults import Faults
from tests.chaos.history import History, Line
from tests.chaos.people import People
from tests.chaos.watcher import Watcher
from tests.chaos.weather import LossyProxy, RestartableServer, SmallDisk, lossy_proxy, restartable_seaweedfs
from tests.chaos.wishes import Wishes
from tests.process.rig import PYTHON, SHM, Rig
from tests.servers import CREDENTIALS, Server

WORKERS = ("w1", "w2", "w3", "w4")
BUCKET = "jobs"
DRAIN_S = 300.0
LOOK_EVERY_S = 0.1

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`store`: seaweedfs or dir. `first_s`: after so long the trouble begins. `jobs_most`: no more are submitted.
    `machines_go`: whole machines are paused and lost, too: a minute each."""

    minutes: float
    store: str = "seaweedfs"
    seed: int = 0
    workers: tuple[str, ...] = WORKERS
    jobs_most: int = 100_000
    first_s: float = 5.0
    fault_every_s: tuple[float, float] = (0.6, 1.6)
    machines_go: bool = True


@dataclass(slots=True)
class Ground:
    """Where a campaign takes place. `url`: as workers and people see the store; `plain_url`: past the lossy network."""

    folder: Path
    url: str
    plain_url: str
    server: RestartableServer | None = None
    network: LossyProxy | None = None


@contextmanager
def ground(plan: Plan, chance: random.Random) -> Iterator[Ground]:
    on_memory = SHM.is_dir() and os.access(SHM, os.W_OK)
    folder = Path(mkdtemp(prefix="stado-chaos-", dir=SHM if on_memory else None))
    try:
        with ExitStack() as stack:
            if plan.store == "dir":
                url = f"file://{folder}/store"
                yield Ground(folder, url, url)
                return
            server = stack.enter_context(restartable_seaweedfs(folder / "weed"))
            server.server.make_bucket(BUCKET)
            network = stack.enter_context(lossy_proxy(server.server.endpoint, chance))
            seen = Server(network.endpoint, server.server.pid)
            yield Ground(folder, seen.url(BUCKET, "q") + "&poll=250ms", server.server.url(BUCKET, "q"), server, network)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(plan: Plan, say: Say = lambda line: None, keep: Path | None = None) -> History:
    """A whole campaign. `keep`: a folder for the logs of all processes and the effect log."""
    history, chance = History(), random.Random(plan.seed)
    with ground(plan, random.Random(plan.seed + 1)) as place, ExitStack() as stack:
        if keep is not None:
            stack.callback(_keep, place.folder, keep)
        disk = SmallDisk(place.folder / "disk")
        stack.callback(disk.close)
        rig = Rig(place.folder, place.url, CREDENTIALS if place.server is not None else None)
        stack.callback(rig.close)
        states = {worker: place.folder / f"state-{worker}" for worker in plan.workers}
        states[plan.workers[-1]] = disk.place
        cluster = Cluster(rig, states)
        watcher = Watcher(Bucket(open_store(place.plain_url)), history)
        people = People(
            Bucket(open_store(place.url)),
            history,
            place.folder / "effects",
            random.Random(plan.seed + 2),
            plan.jobs_most,
        )
        faults = Faults(cluster, history, chance, place.server, place.network, disk, plan.workers[-1], plan.machines_go)
        faults.wishes = Wishes(Bucket(open_store(place.plain_url)))
        begun_s = time.monotonic()
        cluster.start()
        watcher.start()
        people.start()
        try:
            try:
                _trouble(plan, faults, cluster, chance, say)
            finally:
                faults.heal_all()
            people.leave()
            _drain(place, cluster, history, say)
        finally:
            people.leave()
            watcher.leave()
        history.ran_s = time.monotonic() - begun_s
        _conclude(place, cluster, watcher, history, say)
        history.ended_by_themselves += [*cluster.ended, *people.broke]
    return history


def _trouble(plan: Plan, faults: Faults, cluster: Cluster, chance: random.Random, say: Say) -> None:
    begun_s = time.monotonic()
    strike_s, cron_s, told_s = begun_s + plan.first_s, begun_s + 8, begun_s
    while (now_s := time.monotonic()) < begun_s + plan.minutes * 60:
        faults.heal_due()
        cluster.tend(lambda: chance.uniform(0.3, 3.0))
        if now_s >= strike_s:
            strike_s = now_s + chance.uniform(*plan.fault_every_s)
            faults.strike()
        if now_s >= cron_s:
            cron_s = now_s + chance.uniform(8, 16)
            cluster.tick_as_cron_does()
        if now_s >= told_s:
            told_s = now_s + 15
            say(_line(now_s - begun_s, faults.history))
        time.sleep(LOOK_EVERY_S)


def _line(passed_s: float, history: History) -> str:
    over = sum(1 for one in history.acknowledged if one.state is not None)
    sent = len(history.acknowledged)
    return f"{passed_s:5.0f} s  {sent} jobs, {over} over, {len(history.strikes)} faults, {len(history.ends)} ends"


def _drain(place: Ground, cluster: Cluster, history: History, say: Say) -> None:
    """Until every job is over and nothing runs, or the time is up: what is left then is lost."""
    begun_s = told_s = time.monotonic()
    while time.monotonic() - begun_s < DRAIN_S:
        cluster.tend(lambda: 0.3)
        open_ones = [one for one in history.acknowledged if one.state is None and not one.delete_asked_at]
        busy = any(cluster.running(worker) for worker in cluster.states)
        if not open_ones and not busy:
            break
        if time.monotonic() > told_s + 15:
            told_s = time.monotonic()
            say(f"draining: {len(open_ones)} jobs are not over: {', '.join(str(one.id) for one in open_ones[:5])}")
        time.sleep(0.5)
    history.drained_s = time.monotonic() - begun_s


def _conclude(place: Ground, cluster: Cluster, watcher: Watcher, history: History, say: Say) -> None:
    """The last look, one tick, fsck, and what lies on the machines' own disks."""
    rig, env = cluster.rig, cluster.rig.env
    for process in cluster.coordinators:
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait(30)
    command = [PYTHON, "-m", "stado_cli.main", "--store", place.plain_url, "--json"]
    subprocess.run([*command, "scheduler", "tick"], env=env, capture_output=True, timeout=120, check=False)
    with suppress(StoreError):
        watcher.look()
    found = subprocess.run(
        [*command, "storage", "fsck", "--audit"], env=env, capture_output=True, timeout=300, check=False, text=True
    )
    if found.returncode not in (0, 1):
        history.fsck.append(f"fsck ended with {found.returncode}: {found.stderr[-2000:]}")
    else:
        rows = json.loads(found.stdout)["findings"]
        history.fsck += [f"{row['code']} {row['key']}: {row['sentence']}" for row in rows]
    bucket = Bucket(open_store(place.plain_url))
    for one in history.acknowledged:
        if one.id is not None and one.id in history.standing and one.state is not None:
            one.state = read_job(bucket, one.id).state
    _read_effects(rig.folder / "effects", history)
    _read_refused(cluster, history, say)
    if place.network is not None:
        history.network.update(place.network.counted)


def _read_effects(log: Path, history: History) -> None:
    for text in log.read_text().splitlines() if log.exists() else ():
        plain = json.loads(text)
        history.lines.append(Line(AttemptId.parse(plain["attempt"]), plain["pid"], plain["what"], plain["at"]))


def _read_refused(cluster: Cluster, history: History, say: Say) -> None:
    """Ends that were composed and sent, and found another end standing."""
    for worker in cluster.states:
        for folder in cluster.folders(worker):
            facts = report.kept(folder)
            seen = history.ends.get(AttemptId.parse(folder.attempt_id))
            if facts is None or not facts.record or seen is None:
                continue
            with suppress(BadRecord):
                sent = codec.decode(End, facts.record.encode(), "exit.json")
                if sent.nonce != seen.end.nonce:
                    history.refused.append(AttemptId.parse(folder.attempt_id))
                    say(f"refused: {sent.attempt} of {worker}: {_short(sent)}; standing: {_short(seen.end)}")


def _short(end: End) -> str:
    return f"{end.outcome.value}, {end.cause.value or 'exit 0'}, {end.reason!r}, by {end.by} at {end.ended_at:.1f}"


def _keep(folder: Path, keep: Path) -> None:
    keep.mkdir(parents=True, exist_ok=True)
    for path in (*folder.glob("*.err"), *folder.glob("*.log"), folder / "effects"):
        with suppress(OSError):
            shutil.copy(path, keep / path.name)
