"""Day files as scenes: a tick that writes them first, joins small ones, and takes out what was deleted."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from stado_coordinator.compaction import CRON_EVERY_S, JOINED_FROM, Compaction
from stado_like.bucket import days
from stado_like.job import day_keys, keys
from stado_like.job.day_rows import DayRow
from stado_like.reading import told
from stado_like.reading.rows import read_over
from stado_like.store.protocol import list_all
from tests.sim.play import Hand, Play, id_of
from tests.sim.scenarios import ARRAY, ONE, Scene, _array_over, _submitted, tick


def _due(play: Play) -> None:
    """A tick that starts anew now writes day files."""
    play.bucket("ada").put(keys.SWEEP_CURSOR, {"days": {"at": play.bucket("ada").now()}})
    play.world.advance(CRON_EVERY_S + 1.0)


def _some_over(play: Play, hand: Hand) -> None:
    """One of one task and one of several are over, another waits."""
    _array_over(play, hand)
    _submitted(play)
    play.hand("w0").work_all()
    _submitted(play, name="waits")
    _due(play)


def _written(play: Play, *files: Collection[str]) -> None:
    """A file for each of these groups of jobs, as far as they are over."""
    bucket = play.bucket("ada")
    lines = {}
    for row in list_all(bucket.store, keys.JOBS):
        j = keys.parse_job(row.key)
        job = bucket.job(j)
        found = read_over(bucket, j, job) if job is not None else None
        if found is not None:
            lines[j.name] = DayRow(j, row.etag, row.last_modified, told.plain(found))
    for names in files:
        some = [lines[name] for name in names]
        days.write(bucket, "default", day_keys.day_of(some[0].at), some)


def _many_small(play: Play, hand: Hand) -> None:
    """Just enough files that one is made of them. Few jobs, of which each lies in several."""
    names = [f"job-{number}" for number in range(4)]
    for name in names:
        _submitted(play, name=name)
    play.hand("w0").work_all()
    groups = [some for size in (1, 2, 3) for some in combinations(names, size)]
    _written(play, *groups[:JOINED_FROM])


def _one_deleted(play: Play, hand: Hand) -> None:
    """A file tells of two jobs, another of one that was deleted since, as one of the two was."""
    _array_over(play, hand)
    for name in (ONE, "other"):
        _submitted(play, name=name)
    play.hand("w0").work_all()
    _written(play, (ARRAY,), (ONE, "other"))
    for name in (ARRAY, ONE):
        play.delete(play.bucket("ada"), id_of(name))


def write_day_files(play: Play, hand: Hand) -> None:
    """All of `jobs/`, by somebody who knows nothing of what goes on."""
    Compaction().step(hand.bucket, {}, (), resident=False)


SCENES: tuple[Scene, ...] = (
    Scene("tick writes day files", _some_over, tick),
    Scene("day files are joined", _many_small, write_day_files),
    Scene("what was deleted is taken out of day files", _one_deleted, write_day_files),
)
