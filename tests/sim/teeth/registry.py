"""One tooth per guard: the mark in shipped code, how the guard is taken out, and the runs that must notice."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sim import promises
from tests.sim.teeth import below, blocks, days, gangs, kept, ordered, places, traces
from tests.sim.teeth.bites import Probe, pair, scene


@dataclass(frozen=True)
class Tooth:
    """`changes`: texts of `function` and what stands there when the guard is gone. `probes`: tried until one bites."""

    file: str
    mark: str
    function: str
    changes: tuple[tuple[str, str], ...]
    probes: tuple[Probe, ...]

    def __str__(self) -> str:
        return f"{self.mark} ({self.file}, {self.function})"


def tooth(file: str, mark: str, function: str, changes: dict[str, str], *probes: Probe) -> Tooth:
    return Tooth(file, mark, function, tuple(changes.items()), probes)


BUCKET = "stado_like/bucket"
LIVENESS = "stado_like/planning/liveness.py"
CLAIM = f"{BUCKET}/claim.py"
GANG, GENERATIONS = f"{BUCKET}/gang.py", f"{BUCKET}/generations.py"
SHIM = "worker/stado_worker/shim"

TEETH: tuple[Tooth, ...] = (
    # ---- who may decide a death
    tooth(
        LIVENESS, "claim's nonce", "is_vouched",
        {" and one.nonce == held.claim.nonce": ""},
        traces.word_for_another_claim_saves_nobody,
    ),
    tooth(
        LIVENESS, "seen twice", "is_down",
        {"if armed is None or": "if armed is not None and", "if armed_here_s is not None and": "if False and",
         "return look.now - armed.first_seen >= look.ttl_s": "return True"},
        traces.first_tick_after_an_outage_kills_nobody,
    ),
    tooth(
        LIVENESS, "brake", "_brake",
        {"released = due[: max(0, a_minute - used)]": "released = list(oldest)"},
        traces.most_machines_dead_at_once_is_our_own_blindness,
    ),
    tooth(
        f"{BUCKET}/apply.py", "reap reads fresh", "_reap",
        {"if bucket.ambient.boot_s() - look.read_at <= liveness.READS_HOLD_S:": "if True:"},
        traces.sign_of_life_while_a_tick_is_slow_saves,
    ),
    # ---- how an attempt ends
    tooth(
        f"{BUCKET}/end.py", "retry obeys verdict", "_compose",
        {"and over()": "and False"},
        traces.failing_task_under_an_acknowledged_cancel_is_not_retried,
    ),
    tooth(
        f"{BUCKET}/settle.py", "settle before delete", "settle",
        {"    verdict = _verdict_due(": "    bucket.drop(keys.running(a))\n    verdict = _verdict_due("},
        scene("end, retry later"),
    ),
    tooth(
        f"{BUCKET}/settle.py", "verdict before release", "_verdict_due",
        {"verdict = bucket.verdict(a.job)": "verdict = None"},
        traces.end_under_an_acknowledged_cancel_releases_nothing,
    ),
    tooth(
        f"{BUCKET}/settle.py", "tombstone after end", "_is_buried",
        {"if not any(bucket.present(keys.tombstone(a.job))):": "if True:"},
        traces.machine_that_wakes_after_the_deletion_leaves_nothing,
    ),
    # ---- lanes, the queue
    tooth(f"{BUCKET}/lanes.py", "lane rule", "release_by_claim", {"if terms.release_by_end:": "if False:"},
          scene("claim of a capped array")),
    tooth(f"{BUCKET}/lanes.py", "lane rule", "release_by_end", {"if not final:": "if False:"},
          scene("end of an array's rank, retry")),
    tooth(f"{BUCKET}/mend.py", "lane rule", "_may_go",
          {" and load.task_now(bucket, j, before, listed).is_over": ""},
          traces.tick_mends_no_lane_before_its_time),
    tooth("stado_like/planning/groups.py", "groups are up", "_is_up",
          {"return all(rank in members and members[rank].state in enough for rank in group.ranks)": "return True"},
          scene("tick releases no group"), traces.group_is_not_released_before_the_other_runs),
    # ---- jobs that wait for others, families, tasks that waited too long
    tooth("stado_like/planning/awaited.py", "awaited jobs ended", "may_go",
          {"return all(is_met(wanted, came) for wanted, came in waiter.awaited)": "return True"},
          traces.waiter_is_not_released_before_the_other_ended),
    tooth(
        f"{BUCKET}/awaited.py", "new before old", "move",
        {"    bucket.ensure(opened, found.record)": "    bucket.drop(held)\n    bucket.ensure(opened, found.record)"},
        scene("tick releases a waiter"),
    ),
    tooth(f"{BUCKET}/awaited.py", "one decision on a waiter", "decide",
          {"standing = bucket.read(Pointer, keys.released(j))": "standing = None"},
          traces.released_waiter_is_not_given_up_by_a_later_look),
    tooth("stado_like/planning/family.py", "parent is over", "orphaned", {"if one.parent_is_over": "if True"},
          traces.child_of_a_parent_that_goes_on_is_left_alone),
    tooth(CLAIM, "gate looks for the parent", "_gate",
          {"if terms.parent and outcome.is_over(bucket, JobId.parse(terms.parent)):": "if False:"},
          traces.child_of_a_parent_that_ended_does_not_start),
    tooth(f"{BUCKET}/overdue.py", "claim before Unschedulable", "end_late",
          {"if isinstance(sent, Taken):": "if False:"},
          pair("tick that ends a late waiter, claimer")),
    tooth(
        f"{BUCKET}/entries.py", "new before old", "move_due",
        {"    bucket.ensure(becomes, moved)": "    bucket.drop(later.key)\n    bucket.ensure(becomes, moved)"},
        scene("move a retry that is due"),
    ),
    # ---- the gate
    tooth(CLAIM, "tombstone looked for last", "_gate",
          {"(buried,) = bucket.present(keys.tombstone(a.job))": "buried = False"},
          traces.job_back_after_its_deletion_is_not_run),
    tooth(CLAIM, "gate looks for the job", "_gate", {"if job is None:": "if False:"}, pair("deleter, claimer")),
    tooth(CLAIM, "gate looks for the end", "_gate", {"if ended:": "if False:"}, scene("claim after the end, final")),
    tooth(CLAIM, "gate looks for the verdict", "_gate", {"if judged:": "if False:"}, pair("claimer, canceller")),
    tooth(CLAIM, "gate looks for the stop", "_gate", {"if stopped:": "if False:"}, pair("claimer, stopper")),
    tooth(
        CLAIM, "failed gate settles", "_settle_ended",
        {"settle(bucket, a, end, job=job, queue_key=claim.queue_key, mending=True)": "bucket.drop(keys.running(a))"},
        pair("claimer that slept, reaper"),
    ),
    # ---- blocks
    tooth(CLAIM, "carried or open", "_gate",
          {"if not ended and not blocks.is_open(bucket, a, terms):": "if False:"},
          scene("claim of a rank that its block carried")),
    tooth(CLAIM, "gate looks for the mark", "_gate",
          {"if stopped and block_of.is_unit(terms, a.rank):": "if False:"}, pair("claimer of a block, stopper")),
    tooth(f"{BUCKET}/blocks.py", "stop reaches the block", "mark",
          {"bucket.decide(keys.stop(a.job, unit), replace(stop, nonce=bucket.token()))": "pass"},
          pair("claimer of a block, stopper")),
    tooth(f"{BUCKET}/apply.py", "the block first", "_reap", {"if is_open is None:": "if False:"},
          scene("tick reaps a block and a rank's claim")),
    tooth("worker/stado_worker/endings.py", "the block first", "finish",
          {"(is_open := blocks.is_open(bucket, read.a, read.whole)) is not True": "False"},
          blocks.rank_of_a_dead_supervisor_waits_for_its_block),
    tooth(f"{SHIM}/block_report.py", "begun is not given back", "_composed",
          {"elif rank == ran.begun or not ran.whole:": "elif False:"}, blocks.nothing_is_given_back_after_a_reboot),
    tooth(f"{SHIM}/block_ran.py", "begun before started", "RanFile.begin", {"self._write()": "pass"},
          blocks.rank_that_had_begun_is_lost_with_its_supervisor),
    tooth(f"{SHIM}/block_goes_on.py", "goes on under its own claim", "RankOn._verify",
          {"if found is None or found.record.nonce != self._claim.nonce:": "if False:"},
          blocks.rank_whose_claim_was_taken_away_does_not_go_on),
    tooth(f"{SHIM}/block_goes_on.py", "only our own claim is dropped", "drop_own_claim",
          {" and found.record.nonce == claim.nonce": ""}, blocks.claim_of_another_is_left_alone),
    # ---- decisions before their indexes
    tooth(
        f"{BUCKET}/finish.py", "verdict before index", "early_verdict",
        {"    verdict = _decide(":
         "    bucket.ensure(keys.cancel_index(j), Pointer(what=reason))\n    verdict = _decide("},
        scene("cancel, queued"),
    ),
    tooth(
        f"{BUCKET}/finish.py", "final before index", "write_final",
        {"    won = bucket.decide(": "    bucket.drop(keys.open_index(j))\n    won = bucket.decide("},
        scene("end of an array's last rank"),
    ),
    tooth(
        f"{BUCKET}/cancel.py", "stop before index", "stop_task",
        {"    won = bucket.decide(":
         "    bucket.ensure(keys.cancel_index(j, rank), Pointer())\n    won = bucket.decide("},
        scene("stop, queued"),
    ),
    tooth(f"{BUCKET}/cancel.py", "look for the claim first", "_end_queued", {"if claimed:": "if False:"},
          scene("cancel, running")),
    tooth(f"{BUCKET}/cancel.py", "look for the claim first", "_give_back", {"if claimed:": "if False:"},
          scene("stop, block running")),
    # ---- submit and delete
    tooth(f"{BUCKET}/submit.py", "tombstone after create", "_take", {"if buried is not None:": "if False:"},
          scene("submit a name that was deleted")),
    tooth(
        f"{BUCKET}/delete.py", "delete order", "delete_job",
        {"bucket.ensure(keys.tombstone(j), stone)":
         "finish_deletion(bucket, j, job)\n    bucket.ensure(keys.tombstone(j), stone)"},
        scene("delete"),
    ),
    tooth(
        f"{BUCKET}/delete.py", "delete order", "finish_deletion",
        {"    listed = load.listed_of(":
         "    bucket.drop(keys.open_index(j))\n    listed = load.listed_of("},
        scene("delete"),
    ),
    # ---- stores
    tooth("stado_like/store/conditional.py", "nonce read-back", "create_once",
          {"settled, seen = _read_back(store, key, body)": "settled, seen = _read_back(store, key, body + b' ')"},
          traces.claim_refused_by_its_own_success_is_won),
    tooth("stado_like/store/memory.py", "create-if-absent", "MemoryStore.create",
          {"if key in self._bucket.held:": "if False:"}, below.memory_create, pair("claimer, claimer")),
    tooth("stado_like/store/memory.py", "replace-if-same", "MemoryStore.replace",
          {"if found is None or found[1] != etag:": "if found is None:"}, below.memory_replace),
    tooth("stado_like/store/local.py", "create-if-absent", "LocalStore.create",
          {"os.link(temporary, final)": "os.rename(temporary, final)"}, below.local_create),
    tooth("stado_like/store/local.py", "replace-if-same", "LocalStore.replace",
          {"if found is None or found.etag != etag:": "if found is None:"}, below.local_replace),
    tooth("stado_like/store/s3_store.py", "create-if-absent", "S3Store.create", {', IfNoneMatch="*"': ""},
          below.s3_create),
    tooth("stado_like/store/s3_store.py", "replace-if-same", "S3Store.replace", {", IfMatch=said": ""},
          below.s3_replace),
    tooth("stado_like/store/s3.py", "one attempt", "PlainConnection._build",
          {'"total_max_attempts": 1': '"total_max_attempts": 3'}, below.s3_plain_sends_once),
    tooth("stado_like/store/lean.py", "one attempt", "LeanConnection.ask",
          {"retries=False": "retries=urllib3.Retry(3, status_forcelist=[500], allowed_methods=None)"},
          below.s3_lean_sends_once),
    # ---- what attempts leave
    tooth(f"{BUCKET}/checkpoints.py", "look before old checkpoints go", "collect", {"if ended or buried:": "if False:"},
          below.zombie_removes_nothing_that_the_next_attempt_builds_on),
    # ---- what lists tell
    tooth("stado_like/reading/rows.py", "only what is over is told for good", "_one_task_over",
          {"if not task.is_over or task.last is None:": "if task.last is None:"},
          days.job_that_is_to_be_retried_is_in_no_day_file),
    tooth("stado_like/job/day_rows.py", "day rows go by the listing", "read_said", {"if its == etag": "if True"},
          days.bucket_that_was_emptied_and_used_again_is_not_told_by_old_day_files),
    # ---- orders, and what a person wants
    tooth(f"{BUCKET}/order.py", "order in time", "_read", {"if not is_in_time(found):": "if False:"},
          ordered.order_of_ten_minutes_ago_stops_nothing),
    tooth("worker/stado_worker/inbox.py", "wishes before claims", "Inbox.lets_claim", {"self._read_once and ": ""},
          ordered.machine_whose_record_nobody_understands_takes_nothing_at_its_start),
    # ---- gangs
    tooth(CLAIM, "gate reads the placement", "_gate", {"if _needs_seat(terms, claim) else None": "if False else None"},
          gangs.worker_that_was_not_given_a_member_does_not_start_it),
    tooth(
        CLAIM, "gate obeys an abort", "_gate",
        {"if placed is not None and placed.barrier is not None and not placed.barrier.go:": "if False:"},
        gangs.claim_that_comes_after_an_abort_does_not_start,
    ),
    tooth(GENERATIONS, "abort before an early end", "concerns",
          {"go = close(bucket, a.job, g, reason, by=by).go": "go = False"},
          gangs.member_that_ended_keeps_its_gang_from_starting),
    tooth(GENERATIONS, "barrier is a create", "decide",
          {"won = bucket.decide(": "won = bucket.put(", "isinstance(won, Won)": "True"},
          gangs.barrier_has_one_verdict),
    tooth(GANG, "placed whole", "_create", {"won = bucket.decide(": "won = bucket.put("},
          gangs.second_placement_of_a_generation_changes_nothing),
    tooth(GANG, "go needs every member", "try_go",
          {"if not all(bucket.present(*(gang_keys.ready(a, g) for a in members))):": "if False:"},
          gangs.gang_starts_when_every_member_is_ready),
    tooth(GANG, "none ended before go", "try_go", {"if judged or any(ended):": "if False:"},
          gangs.gang_does_not_start_under_a_verdict),
    tooth(GANG, "look for the claim first", "_end_unheld", {"if any(bucket.present(keys.running(a))):": "if False:"},
          gangs.member_that_somebody_holds_is_ended_by_its_holder),
    tooth(f"{BUCKET}/gang_ends.py", "a bad end stops the rest", "after_end",
          {"if standing.doomed and not follows_another:": "if False:"}, gangs.failed_member_stops_the_others),
    tooth(f"{BUCKET}/gang_ends.py", "the complete set decides", "queue_again",
          {"if standing.whole is None or not standing.whole.restart:": "if False:"},
          gangs.nothing_follows_before_all_have_ended),
    tooth(f"{BUCKET}/ordered_place.py", "order in time", "to_start", {"if not is_in_time(found):": "if False:"},
          gangs.order_of_ten_minutes_ago_starts_nothing),
    tooth(f"{SHIM}/barrier.py", "start on go", "GangBarrier.step",
          {"if verdict.go and str(self._read.a) in verdict.attempts:": "if True:"},
          gangs.member_starts_on_go_for_itself_only),
    # ---- the worker, the coordinator
    tooth("worker/stado_worker/endings.py", "only our own claim is undone", "_undeliver", {"if ours:": "if True:"},
          below.claim_of_another_is_not_undone),
    tooth(f"{SHIM}/attempt_dir.py", "launch once", "AttemptDir.create_launch", {" | os.O_EXCL": ""},
          below.nursery_that_wakes_late_starts_nothing),
    tooth(
        f"{SHIM}/control.py", "gate repeated before exec", "Control._start",
        {"now_s - life.looked_boot_s > self._read.terms.ttl_s / 2": "False"},
        below.supervisor_launched_late_asks_the_gate_again,
    ),
    tooth(f"{SHIM}/control.py", "freeze after a long sleep", "Control._asked_again",
          {"self._runner.freeze()": "pass"},
          below.process_of_a_supervisor_that_slept_is_frozen_until_the_gate_is_asked),
    tooth(f"{SHIM}/heartbeat.py", "look before beat", "Io._look", {"if ended or buried:": "if False:"},
          below.fenced_supervisor_falls_silent),
    tooth(
        "coordinator/stado_coordinator/lock.py", "lock takeover by etag", "Lock._take_over",
        {"bucket.store.replace(keys.TICK_LOCK, body, found.etag)": "bucket.store.put(keys.TICK_LOCK, body)"},
        traces.two_takeovers_of_one_dead_lock,
    ),
    # ---- what ticks keep
    tooth(f"{BUCKET}/tick_cache.py", "etag of this listing", "TickCache.body", {" or said[0] != etag": ""},
          kept.attempt_that_another_claimed_is_that_ones),
    tooth(f"{BUCKET}/tick_cache.py", "kept of this store", "TickCache.open",
          {'found.etag if found is not None else ""': '"one"'}, kept.store_that_was_emptied_is_another),
    tooth(f"{BUCKET}/mend.py", "a kept job still stands", "_queue_if_nowhere", {" or not there": ""},
          kept.job_that_is_no_more_is_not_queued_again),
    # ---- placement
    tooth("worker/stado_worker/queue_rules.py", "holds read before claims", "QueueRules._look_again",
          {"now_s - self._seen_at_s > FRESH_S": "False"}, places.hold_that_came_a_moment_ago_is_seen_before_the_claim),
    tooth("worker/stado_worker/queue_rules.py", "holds obeyed", "QueueRules.let_claim",
          {"return False  # guard: holds obeyed": "return True"}, places.room_that_is_held_is_left_to_the_head),
    tooth("worker/stado_worker/queue_rules.py", "quotas are kept by ticks", "QueueRules._is_for_workers",
          {"if seen.workspace.quota.limits:": "if False:"}, places.work_under_a_quota_is_left_to_a_tick),
    tooth(f"{BUCKET}/place.py", "new before old", "move",
          {"    bucket.ensure(target, found.record)  # guard: new before old\n    bucket.drop(key)\n":
           "    bucket.drop(key)\n    bucket.ensure(target, found.record)\n"},
          places.entry_that_is_moved_is_never_nowhere),
    tooth(f"{BUCKET}/place.py", "new before old", "lay_out",
          {"if not entry or any(key in stale for key in entries.all_keys(job, terms, first, None)):": "if not entry:"},
          scene("tick leaves a total of one task to any worker")),
    tooth(f"{BUCKET}/place.py", "the head still waits", "_evict",
          {"if any(bucket.present(keys.running(head), keys.end(head), *over)):": "if False:"},
          places.nobody_is_stopped_for_a_head_that_is_held),
    tooth(f"{BUCKET}/place.py", "room is held before a stop", "_evict",
          {"if not holding.is_held_for(bucket, head.job):": "if False:"},
          places.nobody_is_stopped_for_room_that_a_third_may_take),
    tooth(f"{BUCKET}/load_board.py", "no order is missed", "_Loading.queue",
          {"standing += self._claimed_meanwhile(given, ordered, workspaces)": "pass"},
          places.claim_between_two_listings_counts),
    tooth("stado_like/planning/holds.py", "ends in time", "ends_in_time",
          {"return now + time_limit_s <= hold.starts_at": "return True"}, promises.heads_start_as_promised),
    tooth("stado_like/planning/holds.py", "fits beside", "fits_beside",
          {", Kept(hold.cpu_millis, hold.memory_bytes, hold.gpus))": ")"}, promises.heads_start_as_promised),
    tooth("stado_like/planning/preemption.py", "strictly lower", "_groups",
          {"if one.priority >= unit.priority:": "if False:"}, places.equal_is_never_stopped_for_an_equal),
    tooth("stado_like/planning/preemption.py", "protected", "_is_protected",
          {"return any(one.capped or one.protected_until > now for one in group.running)": "return False"},
          places.minimum_runtime_is_kept),
)  # fmt: skip
