"""Pairs in which whoever writes day files meets another one, a deletion, an end."""

from __future__ import annotations

from stado_like.job.states import Cause
from tests.sim import scenarios as scene
from tests.sim.pairs import Pair, by_a
from tests.sim.play import Hand, Play
from tests.sim.scenarios_days import _many_small, _one_deleted, _some_over, write_day_files


def _one_runs_beside(play: Play, hand: Hand) -> None:
    scene._array_over(play, hand)
    scene._submitted(play)
    scene._take(play, hand)


PAIRS: tuple[Pair, ...] = (
    Pair("two write day files", by_a(_some_over), write_day_files, write_day_files),
    Pair("two join day files", by_a(_many_small), write_day_files, write_day_files),
    Pair("two take out of day files what was deleted", by_a(_one_deleted), write_day_files, write_day_files),
    Pair("writer of day files, deleter", by_a(_some_over), write_day_files, scene.delete_job(scene.ARRAY)),
    Pair("end, writer of day files", by_a(_one_runs_beside), scene.ends(Cause.NONE), write_day_files),
    Pair("end with a retry, writer of day files", by_a(_one_runs_beside), scene.ends(Cause.FAILURE), write_day_files),
)
