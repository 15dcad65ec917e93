"""Every option of sbatch's manual: how it is written, and what is said of those that have no counterpart here.

The whole manual stands here, not only what is understood: without the table `-k 5` and `--nice 5` could not be told
from an option with an argument, an abbreviation (`--ntasks-per-n=2`) could not be completed, and what is not
understood would look like a typing mistake. An option without a sentence is carried over by `importing` or `shape`.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final


class Takes(Enum):
    NOTHING = "nothing"
    VALUE = "a value"
    MAYBE = "a value after = or none"


@dataclass(frozen=True, slots=True)
class Option:
    """`note`: why it changes nothing here; empty for an option that is carried over."""

    name: str
    short: str
    takes: Takes
    note: str = ""


_MACHINES: Final = "machines are chosen by name or label here: node_selection.names, node_selection.match_labels"
_NO_TOPOLOGY: Final = "sockets, cores and threads are not told apart here: a core of a task is any core"
_NO_BINDING: Final = "processes are not bound to cores, memory or GPUs here"
_NOT_CHARGED: Final = "nothing is charged or accounted by such a name here"
_ANSWER: Final = "it changes what sbatch prints; --json and --dry-run do that here"
_AT_ONCE: Final = "the job may start as soon as it fits; submit it at that time, for example with cron or at"
_MAIL: Final = "nobody is mailed; `stado job wait` answers when the job ends"
_SAME_USER: Final = "a job runs as the worker's user"
_ONE_STORE: Final = "a store is one cluster; choose it with --store"

_CARRIED: Final = """
array a VALUE
chdir D VALUE
cpus-per-gpu - VALUE
cpus-per-task c VALUE
dependency d VALUE
error e VALUE
exclusive - MAYBE
export - VALUE
gpus G VALUE
gpus-per-node - VALUE
gpus-per-task - VALUE
gres - VALUE
job-name J VALUE
mem - VALUE
mem-per-cpu - VALUE
mem-per-gpu - VALUE
no-requeue - NOTHING
nodelist w VALUE
nodes N VALUE
ntasks n VALUE
ntasks-per-node - VALUE
output o VALUE
requeue - NOTHING
signal - VALUE
time t VALUE
"""

_NOTED: Final = {
    "account A VALUE": f"{_NOT_CHARGED}; the script finds it in SLURM_JOB_ACCOUNT",
    "acctg-freq - VALUE": "usage is sampled by the worker, at its own pace",
    "batch - VALUE": _MACHINES,
    "bb - VALUE": "there are no burst buffers here",
    "bbf - VALUE": "there are no burst buffers here",
    "begin b VALUE": _AT_ONCE,
    "cluster-constraint - VALUE": _ONE_STORE,
    "clusters M VALUE": _ONE_STORE,
    "comment - VALUE": "a job carries labels instead: --label comment=TEXT",
    "constraint C VALUE": f"features are labels of machines here: {_MACHINES}",
    "consolidate-segments - NOTHING": _MACHINES,
    "container - VALUE": "an OCI bundle is not read; an image is given with --image",
    "container-id - VALUE": "an OCI bundle is not read; an image is given with --image",
    "contiguous - NOTHING": "machines have no order here; to keep a gang close: topology.keep_within",
    "core-spec S VALUE": "what a machine keeps for itself is its worker's --cpus",
    "cores-per-socket - VALUE": _NO_TOPOLOGY,
    "cpu-freq - VALUE": "the frequency of a machine's cores is not changed",
    "deadline - VALUE": "Slurm's is in the cluster's local time; give it as UTC: --deadline 2026-01-31T12:00:00Z",
    "delay-boot - VALUE": "machines are not rebooted for a job",
    "distribution m VALUE": "which task goes to which machine follows from the ranks",
    "exclude x VALUE": f"no machine can be left out by name; {_MACHINES}",
    "export-file - VALUE": "the file is not read; give its variables with --env-file",
    "extra - VALUE": "a job carries labels instead: --label KEY=VALUE",
    "extra-node-info B VALUE": _NO_TOPOLOGY,
    "get-user-env - MAYBE": "the caller's environment is not shipped; for a login shell: `#!/bin/bash -l`",
    "gid - VALUE": _SAME_USER,
    "gpu-bind - VALUE": _NO_BINDING,
    "gpu-freq - VALUE": "the frequency of a GPU is not changed",
    "gpus-per-socket - VALUE": f"{_NO_TOPOLOGY}; say --gpus or --gpus-per-node",
    "gres-flags - VALUE": _NO_BINDING,
    "help h NOTHING": _ANSWER,
    "hint - VALUE": _NO_TOPOLOGY,
    "hold H NOTHING": "a job that is submitted may start; submit it when it may",
    "ignore-pbs - NOTHING": "#PBS and #BSUB lines are never read here",
    "input i VALUE": "standard input is empty; redirect it in the script",
    "kill-on-invalid-dep - VALUE": "a job whose dependency cannot be met any more ends, and says so",
    "licenses L VALUE": "licences are not counted; array.max_parallel caps how many tasks run at once",
    "mail-type - VALUE": _MAIL,
    "mail-user - VALUE": _MAIL,
    "mcs-label - VALUE": "there are no security labels of Slurm here",
    "mem-bind - VALUE": _NO_BINDING,
    "mincpus - VALUE": "say what a task needs: --cpus-per-task",
    "network - VALUE": "the slowest allowed link is requested_resources.network here",
    "nice - MAYBE": "place in the queue is --priority here, -1000 to 1000",
    "no-bell - NOTHING": _ANSWER,
    "no-kill k MAYBE": "what the loss of a machine does is on_failure here",
    "nodefile F VALUE": f"the file is not read; {_MACHINES}",
    "ntasks-per-core - VALUE": _NO_TOPOLOGY,
    "ntasks-per-gpu - VALUE": "say --ntasks and --gpus",
    "ntasks-per-socket - VALUE": _NO_TOPOLOGY,
    "oom-kill-step - MAYBE": "a task that passes its memory ends",
    "open-mode - VALUE": "the file is written anew by each attempt; `stado job logs --attempt N` has the earlier ones",
    "overcommit O NOTHING": "cores are counted as they are asked for; fractions of one are allowed",
    "oversubscribe s NOTHING": "cores of a task are its own",
    "parsable - NOTHING": _ANSWER,
    "partition p VALUE": f"there are no partitions: {_MACHINES}; the script finds the word in SLURM_JOB_PARTITION",
    "power - VALUE": "the power of machines is not managed",
    "prefer - VALUE": _MACHINES,
    "priority - VALUE": "Slurm's numbers have another scale; --priority here is -1000 to 1000",
    "profile - VALUE": "no profiles are written",
    "propagate - MAYBE": "limits of the submitter's shell are not carried over; set them in the script with ulimit",
    "qos q VALUE": "there are no qualities of service: --priority; the script finds the word in SLURM_JOB_QOS",
    "quiet Q NOTHING": _ANSWER,
    "reboot - NOTHING": "machines are not rebooted for a job",
    "reservation - VALUE": "machines cannot be reserved",
    "resv-ports - MAYBE": "no ports are reserved; a gang finds one in MASTER_PORT",
    "segment - VALUE": "to keep a gang close: topology.keep_within",
    "sockets-per-node - VALUE": _NO_TOPOLOGY,
    "spread-job - NOTHING": "to spread a gang: topology.spread",
    "spread-segments - NOTHING": "to spread a gang: topology.spread",
    "stepmgr - NOTHING": "there are no job steps",
    "switches - VALUE": "to keep a gang close: topology.keep_within",
    "test-only - NOTHING": "to look without submitting: --dry-run --explain",
    "thread-spec - VALUE": "what a machine keeps for itself is its worker's --cpus",
    "threads-per-core - VALUE": _NO_TOPOLOGY,
    "time-min - VALUE": "a time limit is not lowered to start a job earlier",
    "tmp - VALUE": "disk is not counted",
    "tres-bind - VALUE": _NO_BINDING,
    "tres-per-job - VALUE": "say --ntasks, --cpus-per-task, --mem, --gpus",
    "tres-per-task - VALUE": "say --cpus-per-task, --mem, --gpus-per-task",
    "uid - VALUE": _SAME_USER,
    "usage - NOTHING": _ANSWER,
    "use-min-nodes - NOTHING": "the smaller number of nodes is taken anyway",
    "verbose v NOTHING": _ANSWER,
    "version V NOTHING": _ANSWER,
    "wait W NOTHING": "`stado job wait` waits, and `stado run` submits, shows the output and waits",
    "wait-all-nodes - VALUE": "a gang starts when all of its machines are ready",
    "wckey - VALUE": _NOT_CHARGED,
    "wrap - VALUE": "the script has a body; a command alone is submitted as `stado job submit -- CMD`",
    "x11 - MAYBE": "no display is forwarded",
}


def _option(row: str, note: str = "") -> Option:
    name, short, takes = row.split()
    return Option(name, short.strip("-"), Takes[takes], note)


OPTIONS: Final = {
    one.name: one
    for one in (
        *(_option(row) for row in _CARRIED.split("\n") if row),
        *(_option(row, note) for row, note in _NOTED.items()),
    )
}
BY_SHORT: Final = {option.short: option for option in OPTIONS.values() if option.short}


def named(word: str) -> list[Option]:
    """The options that `--word` may mean: the one of that name, else all that begin so (as getopt completes them)."""
    if word in OPTIONS:
        return [OPTIONS[word]]
    return [option for name, option in OPTIONS.items() if word and name.startswith(word)]


def meant(word: str) -> str:
    """The option that a mistyped `--word` is close to; empty when it is like none."""
    alike = [name for name in OPTIONS if abs(len(name) - len(word)) <= 2]
    near = get_close_matches(word, alike, n=1, cutoff=0.75)
    return near[0] if near else ""
