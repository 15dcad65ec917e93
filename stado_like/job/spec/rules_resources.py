"""What contradicts itself in `requested_resources`: three forms of one ask, and shapes that no cluster can have.

Only what is impossible on every cluster is refused. A total that a said number of tasks does not divide depends on
nothing but the document when the number is `machines`; where it comes from elsewhere the job waits and says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from stado_like.job.spec import limits
from stado_like.job.spec.as_written import part, texts, whole, word

Complaints = dict[str, str]
Rule = Callable[[Mapping[str, Any], str], Complaints]

_ONE_FORM: Final = "ask for CPU and memory per task, per GPU or as a share of a machine, in one of the three"


def resource_contradictions(asked: Mapping[str, Any], at: str) -> Complaints:
    """Every contradiction; `at` is the path of `requested_resources` itself."""
    found: Complaints = {}
    for rule in RULES:
        for path, sentence in rule(asked, at).items():
            found.setdefault(path, sentence)
    return found


def gpus_counted(asked: Mapping[str, Any]) -> int | None:
    """GPUs asked for by number or by id; None when the document does not let it be told."""
    gpus = part(asked, "gpu_requests")
    count = whole(gpus, "count", 0, limits.GPUS)
    return count or len(texts(gpus, "ids")) if count is not None else None


def asks_for_gpus(asked: Mapping[str, Any]) -> bool | None:
    """Whether there are GPUs in the ask; None when the document does not let it be told."""
    raw = asked.get("gpu_requests")
    if raw is not None and not isinstance(raw, dict):
        return None
    if part(asked, "gpu_requests").get("policy") == "All":
        return True
    count = gpus_counted(asked)
    return None if count is None else count > 0


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _given(asked: Mapping[str, Any], name: str) -> bool:
    return name in asked and not (_is_number(asked[name]) and asked[name] == 0)


def cpu_and_memory_have_one_form(asked: Mapping[str, Any], at: str) -> Complaints:
    per_gpu, share = asked.get("per_gpu") is not None, _given(asked, "node_fraction")
    per_task = [name for name in ("cpu_cores", "memory_bytes") if _given(asked, name)]
    found: Complaints = {}
    if per_gpu and share:
        found[f"{at}.node_fraction"] = f"Cannot be combined with per_gpu; {_ONE_FORM}"
    if per_task and (per_gpu or share):
        other = "per_gpu" if per_gpu else "node_fraction"
        found[f"{at}.{other}"] = f"Cannot be combined with {' and '.join(per_task)}; {_ONE_FORM}"
    return found


def cpu_and_memory_come_together(asked: Mapping[str, Any], at: str) -> Complaints:
    if asked.get("per_gpu") is not None or _given(asked, "node_fraction"):
        return {}
    found: Complaints = {}
    cores, memory = "cpu_cores" in asked, "memory_bytes" in asked
    if cores and not memory:
        found[f"{at}.memory_bytes"] = "Must be given together with cpu_cores"
    if memory and not cores:
        found[f"{at}.cpu_cores"] = "Must be given together with memory_bytes"
    for name in ("cpu_cores", "memory_bytes"):
        if _is_number(asked.get(name)) and asked[name] == 0:
            found[f"{at}.{name}"] = "Must be greater than 0, got 0; leave out both for 1 core and 1 GiB"
    return found


def per_gpu_is_something_for_gpus(asked: Mapping[str, Any], at: str) -> Complaints:
    per_gpu = part(asked, "per_gpu")
    found = {
        f"{at}.per_gpu.{name}": "Must be greater than 0, got 0"
        for name in ("cpu_cores", "memory_bytes")
        if _is_number(per_gpu.get(name)) and per_gpu[name] == 0
    }
    if isinstance(asked.get("per_gpu"), dict) and asks_for_gpus(asked) is False:
        found[f"{at}.per_gpu"] = "Needs GPUs: give gpu_requests.count"
    return found


def bursts_need_cores(asked: Mapping[str, Any], at: str) -> Complaints:
    if asked.get("cpu_burst") is not True or _given(asked, "cpu_cores") or asked.get("per_gpu") is not None:
        return {}
    return {f"{at}.cpu_burst": "Needs cpu_cores or per_gpu.cpu_cores: they are the weight"}


_KINDS: Final = ("models", "min_memory_gb", "vendor", "min_per_machine", "memory_gb")


def kinds_of_gpus_need_gpus(asked: Mapping[str, Any], at: str) -> Complaints:
    """A kind without a number would run on no GPU at all."""
    if asks_for_gpus(asked) is not False:
        return {}
    gpus = part(asked, "gpu_requests")
    found = {
        f"{at}.gpu_requests.{name}": "Needs GPUs: give gpu_requests.count"
        for name in _KINDS
        if gpus.get(name) not in (None, 0, [])
    }
    if gpus.get("policy") == "PerNode":
        found[f"{at}.gpu_requests.policy"] = "PerNode needs GPUs: give gpu_requests.count"
    return found


def gpu_ids_are_the_count(asked: Mapping[str, Any], at: str) -> Complaints:
    gpus = part(asked, "gpu_requests")
    ids = [each for _, each in texts(gpus, "ids")]
    if not ids:
        return {}
    found: Complaints = {}
    count = whole(gpus, "count", 0, limits.GPUS)
    twice = next((each for each, times in Counter(ids).items() if times > 1), None)
    if twice is not None:
        found[f"{at}.gpu_requests.ids"] = f"{twice[:60]} stands twice; give each GPU once"
    elif count and count != len(ids):
        found[f"{at}.gpu_requests.ids"] = f"Must name as many GPUs as count ({count}), got {len(ids)}; leave out count"
    if gpus.get("policy") == "All":
        found[f"{at}.gpu_requests.policy"] = "All takes every free GPU and cannot be combined with ids"
    return found


def shares_of_cards_are_not_whole_machines(asked: Mapping[str, Any], at: str) -> Complaints:
    gpus = part(asked, "gpu_requests")
    if gpus.get("memory_gb") is None or gpus.get("policy") != "All":
        return {}
    return {
        f"{at}.gpu_requests.memory_gb": "A share of a card cannot be combined with policy: All, which takes them whole"
    }


def gpus_per_machine_fit_the_count(asked: Mapping[str, Any], at: str) -> Complaints:
    gpus = part(asked, "gpu_requests")
    least, count = whole(gpus, "min_per_machine", 0, limits.GPUS), gpus_counted(asked)
    machines = whole(asked, "machines", 0, limits.MACHINES) or 1
    if not least or not count or gpus.get("policy") == "All" or count % machines or least <= count // machines:
        return {}
    split = f", which are {count // machines} on each of {machines} machines" if machines > 1 else ""
    return {f"{at}.gpu_requests.min_per_machine": f"Must be at most the count of GPUs ({count}{split}), got {least}"}


def machines_divide_the_gpus(asked: Mapping[str, Any], at: str) -> Complaints:
    machines, count = whole(asked, "machines", 0, limits.MACHINES), gpus_counted(asked)
    if not machines or not count or count % machines == 0 or part(asked, "gpu_requests").get("policy") == "All":
        return {}
    return {f"{at}.machines": f"Must divide gpu_requests.count ({count}) evenly, got {machines}"}


def the_number_of_tasks_is_said_once(asked: Mapping[str, Any], at: str) -> Complaints:
    machines = whole(asked, "machines", 0, limits.MACHINES)
    chosen, topology = part(asked, "node_selection"), part(asked, "topology")
    found: Complaints = {}
    if machines:
        others = [
            ("node_selection.count", chosen.get("count") not in (None, 0, "0")),
            ("topology.min_nodes", topology.get("min_nodes") not in (None, 0)),
            ("node_selection.mode: All", chosen.get("mode") == "All"),
        ]
        said = [name for name, given in others if given]
        if said:
            found[f"{at}.machines"] = f"Cannot be combined with {' or '.join(said)}: each says how many tasks there are"
    if chosen.get("mode") == "All" and chosen.get("count") not in (None, 0, "0"):
        found[f"{at}.node_selection.count"] = "Cannot be combined with mode: All, which is one task on every machine"
    return found


def _tasks_apart(asked: Mapping[str, Any]) -> int | None:
    """On how many distinct machines the tasks must be, as far as the document says."""
    chosen = part(asked, "node_selection")
    apart = [whole(asked, "machines", 0, limits.MACHINES), whole(part(asked, "topology"), "min_nodes")]
    if word(chosen, "mode", "Exact") == "Exact":
        count = _count(chosen)
        apart += [count, 0 if count or apart[0] else len({each for _, each in texts(chosen, "names")})]
    return None if None in apart else max(each for each in apart if each is not None)


def _count(chosen: Mapping[str, Any]) -> int | None:
    """`node_selection.count`, also where it is written as a text."""
    raw = chosen.get("count")
    if isinstance(raw, str):
        return int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 10 else None
    return whole(chosen, "count", 0, limits.MACHINES)


def enough_machines_are_named(asked: Mapping[str, Any], at: str) -> Complaints:
    chosen = part(asked, "node_selection")
    names = [each for _, each in texts(chosen, "names")]
    found: Complaints = {}
    if len(names) != len(set(names)):
        found[f"{at}.node_selection.names"] = "Names a machine twice; give each once"
    apart = _tasks_apart(asked)
    if names and apart is not None and apart > len(set(names)):
        found[f"{at}.node_selection.names"] = (
            f"Must name at least {apart} machines, one for each task, got {len(set(names))}"
        )
    return found


def machines_lie_within_their_range(asked: Mapping[str, Any], at: str) -> Complaints:
    topology = part(asked, "topology")
    low, high = (whole(topology, name, 0, limits.MACHINES) for name in ("min_nodes", "max_nodes"))
    apart = _tasks_apart(asked)
    if not high:
        return {}
    if low and low > high:
        return {f"{at}.topology.min_nodes": f"Must be at most max_nodes ({high}), got {low}"}
    if apart is not None and apart > high:
        sentence = f"Must be at least {apart}, as many machines as the tasks are asked to be on, got {high}"
        return {f"{at}.topology.max_nodes": sentence}
    return {}


def what_is_kept_together_is_not_spread(asked: Mapping[str, Any], at: str) -> Complaints:
    topology = part(asked, "topology")
    within, spread = topology.get("keep_within"), topology.get("spread")
    if within == "node" and spread in limits.SPREAD:
        return {
            f"{at}.topology.spread": f"Cannot be combined with keep_within: node, which is one machine, got {spread}"
        }
    if within == spread and within in ("rack", "fabric"):
        return {f"{at}.topology.spread": f"Cannot be combined with keep_within: {within}, which is one, got {spread}"}
    apart = _tasks_apart(asked)
    if within == "node" and apart is not None and apart > 1:
        return {f"{at}.topology.keep_within": f"node is one machine, and the tasks are asked to be on {apart}"}
    return {}


def links_suit_what_they_join(asked: Mapping[str, Any], at: str) -> Complaints:
    links = part(asked, "network")
    if links.get("interconnect") != "nvlink":
        return {}
    found: Complaints = {}
    if asks_for_gpus(asked) is False:
        found[f"{at}.network.interconnect"] = "nvlink needs GPUs: give gpu_requests.count"
    if whole(links, "min_gbps", 0, limits.GBPS):
        found[f"{at}.network.min_gbps"] = "Is a speed of RDMA ports and cannot be combined with interconnect: nvlink"
    return found


RULES: Final[tuple[Rule, ...]] = (
    cpu_and_memory_have_one_form,
    cpu_and_memory_come_together,
    per_gpu_is_something_for_gpus,
    bursts_need_cores,
    kinds_of_gpus_need_gpus,
    gpu_ids_are_the_count,
    shares_of_cards_are_not_whole_machines,
    gpus_per_machine_fit_the_count,
    machines_divide_the_gpus,
    the_number_of_tasks_is_said_once,
    enough_machines_are_named,
    machines_lie_within_their_range,
    what_is_kept_together_is_not_spread,
    links_suit_what_they_join,
)
