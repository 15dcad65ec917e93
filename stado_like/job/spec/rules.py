"""What no single field of the job can know: two fields that contradict each other, names that must exist, sums.

These rules read the document as it was written, not the models, and pass over whatever has the wrong type: so a person
learns of a contradiction in the same answer as of a typing mistake elsewhere. Each returns sentences by path. What
concerns one template only is in `rules_task`, asked for every template there is. How many tasks a job has follows from
several defaults, so `counted` reads the stored form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from stado_like.job import blocks
from stado_like.job.shape import shape_of
from stado_like.job.spec import limits, rules_task, units
from stado_like.job.spec.as_written import NOTHING, part

Complaints = dict[str, str]
Rule = Callable[[Mapping[str, Any]], Complaints]


def contradictions(document: Mapping[str, Any]) -> Complaints:
    """Every contradiction of a document in any state of disrepair; empty when there is none."""
    spec = part(document, "spec")
    found: Complaints = {}
    for rule in SPEC_RULES:
        found.update(rule(spec))
    found.update(name_leaves_room_for_groups(document))
    found.update(job_waits_for_others(document))
    for path, template in templates(spec):
        found.update(rules_task.contradictions(template, path))
    return found


def templates(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every template that is a mapping, with its path."""
    template = spec.get("task_template")
    if isinstance(template, dict):
        yield "task_template", template
    for index, group in groups(spec):
        if isinstance(group.get("task_template"), dict):
            yield f"task_groups[{index}].task_template", group["task_template"]


def groups(spec: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    listed = spec.get("task_groups")
    given = listed[: limits.GROUPS_MAX] if isinstance(listed, list) else []
    return [(index, group) for index, group in enumerate(given) if isinstance(group, dict)]


def start_of(spec: Mapping[str, Any]) -> str:
    """How the tasks start, by whichever of `start` and `policy` says so."""
    said = spec.get("start")
    if said is None:
        said = "Gang" if spec.get("policy") in ("Gang", "GangIndependent") else "Independent"
    return said if isinstance(said, str) else ""


def _whole(value: object, bounds: tuple[int, int]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and bounds[0] <= value <= bounds[1]


def _given(spec: Mapping[str, Any], name: str) -> bool:
    return spec.get(name) is not None


# ---- what is run


def template_or_groups(spec: Mapping[str, Any]) -> Complaints:
    if spec is NOTHING:
        return {}  # there is no spec, which is said already
    grouped = spec.get("task_groups", []) != []  # of whatever type: what is wrong with it is said already
    if grouped and _given(spec, "task_template"):
        return {"task_template": "Must be left out when task_groups is set; each group has its own"}
    if not grouped and not _given(spec, "task_template"):
        return {"task_template": "Required unless task_groups is set"}
    return {}


def array_stands_alone(spec: Mapping[str, Any]) -> Complaints:
    if not _given(spec, "array"):
        return {}
    found: Complaints = {}
    if start_of(spec) in ("Gang", "MinAvailable"):
        where = "start" if _given(spec, "start") else "policy"
        found[where] = f"An array needs start: Independent (or no start), got {spec[where]}"
    if spec.get("task_groups"):
        found["task_groups"] = "Must be left out when array is set: an array cannot have task_groups"
    return found


def array_size_is_its_lists(spec: Mapping[str, Any]) -> Complaints:
    array = part(spec, "array")
    if array is NOTHING:
        return {}
    size = array.get("size")
    lengths = {name: len(array[name]) for name in ("indices", "entries") if isinstance(array.get(name), list)}
    if size is None:
        if not lengths and all(array.get(name) is None for name in ("indices", "entries")):
            return {"array.size": "Required, unless indices or entries give it"}
        first = next(iter(lengths.items()), None)
        if first is None or lengths.get("entries", first[1]) == first[1]:
            return {}
        return {"array.entries": f"Must be as many as indices ({first[1]}), got {lengths['entries']}"}
    if not _whole(size, limits.ARRAY_SIZE):
        return {}
    return {
        f"array.{name}": f"Must be as many as the array's size ({size}), got {length}"
        for name, length in lengths.items()
        if 0 < length <= limits.ARRAY_SIZE[1] and length != size
    }


def array_cap_fits(spec: Mapping[str, Any]) -> Complaints:
    array = part(spec, "array")
    size, cap = array_size(array), array.get("max_parallel", 0)
    if not _whole(size, limits.ARRAY_SIZE) or not _whole(cap, (0, limits.ARRAY_SIZE[1])) or cap <= size:
        return {}
    return {"array.max_parallel": f"Must be between 0 and {size} (the array's size), got {cap}"}


def array_copies_are_single(spec: Mapping[str, Any]) -> Complaints:
    """A copy is one task: its template cannot ask for several."""
    if not _given(spec, "array"):
        return {}
    asked = part(part(spec, "task_template"), "requested_resources")
    numbers = {
        "machines": asked.get("machines"),
        "node_selection.count": part(asked, "node_selection").get("count"),
        "topology.min_nodes": part(asked, "topology").get("min_nodes"),
    }
    return {
        f"task_template.requested_resources.{name}": f"Must be at most 1 in an array, each copy is one task; got {said}"
        for name, said in numbers.items()
        if (isinstance(said, int) and said > 1) or (isinstance(said, str) and said.isdecimal() and said not in "01")
    }


def array_size(array: Mapping[str, Any]) -> Any:
    """The size that is said, or that of the list which gives it."""
    if array.get("size") is not None:
        return array["size"]
    listed = array.get("indices") or array.get("entries")
    return len(listed) if isinstance(listed, list) else None


def array_indices_ascend(spec: Mapping[str, Any]) -> Complaints:
    indices = part(spec, "array").get("indices")
    if not isinstance(indices, list):
        return {}
    for place, (before, after) in enumerate(pairwise(indices[: limits.ARRAY_SIZE[1]]), 1):
        if _whole(before, limits.ARRAY_INDEX) and _whole(after, limits.ARRAY_INDEX) and after <= before:
            return {f"array.indices[{place}]": f"Must be greater than the one before it ({before}), got {after}"}
    return {}


def array_entries_fit(spec: Mapping[str, Any]) -> Complaints:
    entries = part(spec, "array").get("entries")
    if not isinstance(entries, list):
        return {}
    total = sum(len(each.encode("utf-8", "surrogatepass")) for each in entries if isinstance(each, str))
    if total <= limits.ENTRIES_MAX_BYTES:
        return {}
    return {"array.entries": f"Must be at most 1 MiB together, got {units.size_words(total)}; put the data into a file"}


# ---- how the tasks start and end


def min_available_goes_with_its_start(spec: Mapping[str, Any]) -> Complaints:
    chosen, given = start_of(spec) == "MinAvailable", _given(spec, "min_available")
    if chosen and not given:
        return {"min_available": "Required with start: MinAvailable"}
    if given and not chosen:
        return {"min_available": f"Only with start: MinAvailable, got start: {start_of(spec) or 'of another kind'}"}
    return {}


def checkpoint_from_has_a_directory(spec: Mapping[str, Any]) -> Complaints:
    if not _given(spec, "checkpoint_from") or any(template.get("checkpoint") for _, template in templates(spec)):
        return {}
    return {"checkpoint_from": "Needs task_template.checkpoint.dir: there the checkpoint is laid out"}


def service_never_completes(spec: Mapping[str, Any]) -> Complaints:
    if spec.get("lifetime") != "Service":
        return {}
    found: Complaints = {}
    if _given(spec, "array"):
        found["array"] = "lifetime: Service cannot have an array"
    if spec.get("on_failure") == "FailJob":
        found["on_failure"] = "lifetime: Service cannot have on_failure: FailJob"
    if _given(spec, "complete_with"):
        found["complete_with"] = "Not with lifetime: Service, which never completes"
    return found


def gang_has_no_order(spec: Mapping[str, Any]) -> Complaints:
    if start_of(spec) != "Gang" or not any(group.get("depends_on") for _, group in groups(spec)):
        return {}
    where = "start" if _given(spec, "start") else "policy"
    return {where: "start: Gang cannot have task_groups with depends_on: a gang starts every worker together"}


# ---- groups


def group_names(spec: Mapping[str, Any]) -> dict[str, int]:
    """Each name with the first group that has it."""
    found: dict[str, int] = {}
    for index, group in groups(spec):
        name = group.get("name")
        if isinstance(name, str):
            found.setdefault(name, index)
    return found


def group_names_are_unique(spec: Mapping[str, Any]) -> Complaints:
    first = group_names(spec)
    return {
        f"task_groups[{index}].name": f"Group names are unique; task_groups[{first[group['name']]}] has this one"
        for index, group in groups(spec)
        if isinstance(group.get("name"), str) and first[group["name"]] != index
    }


def named_groups_exist(spec: Mapping[str, Any]) -> Complaints:
    known = group_names(spec)
    found: Complaints = {}
    for field in ("leader_group", "complete_with"):
        name = spec.get(field)
        if name is not None and not spec.get("task_groups"):
            found[field] = "Only with task_groups"
        elif isinstance(name, str) and name not in known:
            found[field] = _no_such_group(name, known)
    for index, group in groups(spec):
        for place, name in _waited_for(group):
            at = f"task_groups[{index}].depends_on[{place}].group_name"
            if name == group.get("name"):
                found[at] = "A group cannot depend on itself"
            elif name not in known:
                found[at] = _no_such_group(name, known)
    return found


def _waited_for(group: Mapping[str, Any]) -> list[tuple[int, str]]:
    listed = group.get("depends_on")
    given = listed[: limits.GROUPS_MAX] if isinstance(listed, list) else []
    named = ((place, each.get("group_name")) for place, each in enumerate(given) if isinstance(each, dict))
    return [(place, name) for place, name in named if isinstance(name, str)]


def _no_such_group(name: str, known: Mapping[str, int]) -> str:
    shown = ", ".join(_said(one) for one in list(known)[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")
    return f"Must name one of the job's groups ({shown[:300]}), got {_said(name)}"


def _said(name: str) -> str:
    """A name as a sentence may show it, whatever the document held."""
    cut = name[: limits.GROUP_NAME_MAX]
    return cut if cut.isprintable() else ascii(cut[:10])[1:-1]


def groups_wait_in_no_circle(spec: Mapping[str, Any]) -> Complaints:
    """One circle is shown, at one of its groups; a group that waits for itself is said elsewhere."""
    waits = {
        str(group["name"]): [name for _, name in _waited_for(group) if name != group["name"]]
        for _, group in groups(spec)
        if isinstance(group.get("name"), str)
    }
    left = {name: set(names) & waits.keys() for name, names in waits.items()}
    while ready := [name for name, names in left.items() if not names]:
        for name in ready:
            del left[name]
        for names in left.values():
            names.difference_update(ready)
    if not left:
        return {}
    circle = [next(iter(left))]  # whoever is left waits for one that is left: following them comes round
    while circle[-1] not in circle[:-1]:
        circle.append(next(name for name in waits[circle[-1]] if name in left))
    circle = circle[circle.index(circle[-1]) :]
    index = group_names(spec)[circle[0]]
    said = " -> ".join(_said(name) for name in circle[:5]) + (" -> …" if len(circle) > 5 else "")
    return {f"task_groups[{index}].depends_on": f"Groups must not wait for each other in a circle: {said}"}


# ---- what metadata and spec say together


def name_leaves_room_for_groups(document: Mapping[str, Any]) -> Complaints:
    name = part(document, "metadata").get("name")
    named = [each for each in group_names(part(document, "spec")) if len(each) <= limits.GROUP_NAME_MAX]
    if not named or not isinstance(name, str) or len(name) > limits.NAME_MAX:
        return {}
    longest = max(named, key=len)
    room = limits.NAME_MAX - len(longest) - 1
    if len(name) <= room:
        return {}
    return {
        "metadata.name": f"Must be at most {room} characters with the group {_said(longest)} "
        f"({limits.NAME_MAX} minus its length minus 1), got {len(name)}"
    }


def job_waits_for_others(document: Mapping[str, Any]) -> Complaints:
    listed, metadata = part(document, "spec").get("after"), part(document, "metadata")
    name, workspace = metadata.get("name"), metadata.get("workspace", limits.DEFAULT_WORKSPACE)
    return {
        f"after[{place}].job": "A job cannot wait for itself"
        for place, each in enumerate(listed[: limits.AFTER_MAX] if isinstance(listed, list) else [])
        if isinstance(each, dict) and each.get("job") in (name, f"{workspace}/{name}") and isinstance(name, str)
    }


SPEC_RULES: Final[tuple[Rule, ...]] = (
    template_or_groups,
    array_stands_alone,
    array_size_is_its_lists,
    array_cap_fits,
    array_copies_are_single,
    array_indices_ascend,
    array_entries_fit,
    min_available_goes_with_its_start,
    checkpoint_from_has_a_directory,
    service_never_completes,
    gang_has_no_order,
    group_names_are_unique,
    named_groups_exist,
    groups_wait_in_no_circle,
)


# ---- the stored form


def counted(stored: Mapping[str, Any]) -> Complaints:
    """Numbers of tasks, where the document alone says them: too many, or fewer than must start together."""
    spec = stored["spec"]
    shapes = [
        (path, shape_of(template["requested_resources"], together=spec["start"] != "Independent"))
        for path, template in templates(spec)
    ]
    tasks = sum(shape.tasks for _, shape in shapes)
    if tasks > limits.TASKS_MAX:
        path = shapes[0][0] if len(shapes) == 1 else "task_groups"
        return {path: f"A job has at most {limits.TASKS_MAX} tasks, got {tasks}"}
    least = spec.get("min_available", 0)
    if least > tasks and all(shape.decided for _, shape in shapes):
        return {"min_available": f"Must be between 1 and {tasks} (the job's tasks), got {least}"}
    if (spec.get("array") or NOTHING).get("block", 1) > 1 and (what := blocks.unkeepable(spec)):
        return {"array.block": f"Must be 1 (or left out) with {what}: what is carried together cannot keep it"}
    return {}
