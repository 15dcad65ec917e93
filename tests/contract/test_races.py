"""Of any number of callers exactly one creates: threads, processes, and those who replace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from stado_like.store.conditional import Lost, Won, create_once
from stado_like.store.protocol import Applied, Rejected, Write
from tests.contract.conftest import S3_KINDS, Subject

RACES = {"memory": (200, 1, 16), "local": (200, 1, 16), "moto": (200, 1, 16), "seaweedfs": (5, 2, 8)}
"""Rounds one after the other, races side by side in each, and racers in a race. SeaweedFS polls its lock once a second
and losers wait: with sixteen the last one may wait 6 s, too near to the 8 s after which a client gives up."""


def test_sixteen_threads_create_one_key_and_one_wins(subject: Subject) -> None:
    """Two creators both get 200: an emulator checked, then wrote, without a lock."""
    rounds, beside, racers = RACES[subject.kind]
    stores = [subject.open() for _ in range(racers)]
    line = Barrier(racers * beside)
    answers: dict[str, dict[int, Write]] = {
        f"race/{turn}.{race}": {} for turn in range(rounds) for race in range(beside)
    }

    def enter(place: int) -> None:
        race, racer = divmod(place, racers)
        for turn in range(rounds):
            key = f"race/{turn}.{race}"
            line.wait(60)
            answers[key][racer] = stores[racer].create(key, f"{racer}".encode())

    with ThreadPoolExecutor(racers * beside) as pool:
        for entered in [pool.submit(enter, place) for place in range(racers * beside)]:
            entered.result()
    for key, said in answers.items():
        won = [racer for racer, answer in said.items() if isinstance(answer, Applied)]
        assert len(won) == 1, f"{key}: {len(won)} winners"
        assert sum(isinstance(answer, Rejected) for answer in said.values()) == racers - 1
        found = stores[0].get(key)
        assert found is not None and found.body == f"{won[0]}".encode()


def test_of_create_once_callers_one_wins_and_all_others_are_shown_its_body(subject: Subject) -> None:
    stores = [subject.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda racer: create_once(stores[racer], "claim", f"{racer}".encode()), range(4)))
    won = [racer for racer, outcome in enumerate(outcomes) if isinstance(outcome, Won)]
    assert len(won) == 1
    assert {outcome.found.body for outcome in outcomes if isinstance(outcome, Lost)} == {f"{won[0]}".encode()}


def test_of_those_who_replace_the_same_bytes_one_wins(subject: Subject) -> None:
    """Breaker deletes a fresh lock: a takeover is a replace of the bytes that were seen, and has one winner."""
    racers, rounds = (2, 3) if subject.kind == "seaweedfs" else (8, 25)
    stores = [subject.open() for _ in range(racers)]
    seen = stores[0].create("lock", b"stale")
    assert isinstance(seen, Applied)
    for turn in range(rounds):
        line = Barrier(racers)

        def take(racer: int, line: Barrier = line, etag: str = seen.etag, turn: int = turn) -> Write:
            line.wait(60)
            return stores[racer].replace("lock", f"{turn}.{racer}".encode(), etag)

        with ThreadPoolExecutor(racers) as pool:
            answers = list(pool.map(take, range(racers)))
        won = [racer for racer, answer in enumerate(answers) if isinstance(answer, Applied)]
        assert len(won) == 1
        found = stores[0].get("lock")
        assert found is not None and found.body == f"{turn}.{won[0]}".encode()
        seen = Applied(found.etag, found.now)


PROCESS = """
import sys
from stado_like.store.protocol import Applied
from stado_like.store.url import open_store
url, name, count, replaces = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = open_store(url)
store.head("warm")
print("ready", flush=True)
sys.stdin.readline()
won = [n for n in range(count) if isinstance(store.create(f"race/{n:04d}", name.encode()), Applied)]
added = 0
while added < replaces:
    seen = store.get("counter")
    added += isinstance(store.replace("counter", b"%d" % (int(seen.body) + 1), seen.etag), Applied)
print(*won, flush=True)
"""


@pytest.mark.parametrize("kind", ["local", *S3_KINDS])
def test_two_processes_at_once(kind: str, subject_of: Callable[[str], Subject]) -> None:
    subject = subject_of(kind)
    store = subject.open()
    store.create("counter", b"0")
    count, replaces = {"local": (400, 100), "moto": (60, 20), "seaweedfs": (20, 3)}[subject.kind]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, subject.url, name, str(count), str(replaces)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        for name in ("one", "two")
    ]
    for racer in racers:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    won = []
    for racer in racers:
        said, _ = racer.communicate(timeout=60)
        assert racer.returncode == 0
        won.append({int(number) for number in said.split()})
    assert won[0] & won[1] == set()
    assert won[0] | won[1] == set(range(count))
    for number in range(count):
        found = store.get(f"race/{number:04d}")
        assert found is not None and found.body == (b"one" if number in won[0] else b"two")
    counter = store.get("counter")
    assert counter is not None and int(counter.body) == 2 * replaces
