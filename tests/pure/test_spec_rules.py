"""What two fields of a job say about each other: each rule has a document that breaks it, and one that nearly does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stado_like.errors import InvalidSpecification, UsageError
from stado_like.job.spec import limits, rules
from stado_like.job.spec.validate import Defaults, validate

TEMPLATE: dict[str, Any] = {"command": "true"}


def job(name: str = "train", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"task_template": TEMPLATE, **spec}}


def groups(*listed: Any, name: str = "train", **spec: Any) -> dict[str, Any]:
    """`"a"` is a group, `("a", "b")` one that waits for b."""
    made = []
    for each in listed:
        own, *waited = (each,) if isinstance(each, str) else each
        made.append({"name": own, "task_template": TEMPLATE, "depends_on": [{"group_name": one} for one in waited]})
    return {"metadata": {"name": name}, "spec": {"task_groups": made, **spec}}


def many(name: str, count: int) -> dict[str, Any]:
    chosen = {"node_selection": {"count": count}}
    return {"name": name, "task_template": {**TEMPLATE, "requested_resources": chosen}}


def detail_of(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidSpecification) as refused:
        validate(document)
    assert refused.value.code == "VALIDATION_ERROR"
    return refused.value.detail


RESOURCES = "task_template.requested_resources"
GANG_ORDER = "start: Gang cannot have task_groups with depends_on: a gang starts every worker together"
BROKEN: list[tuple[Callable[..., Any], dict[str, Any], dict[str, str]]] = [
    (
        rules.template_or_groups,
        {"metadata": {"name": "train"}, "spec": {}},
        {"task_template": "Required unless task_groups is set"},
    ),
    (
        rules.template_or_groups,
        groups("a", task_template=TEMPLATE),
        {"task_template": "Must be left out when task_groups is set; each group has its own"},
    ),
    (
        rules.array_stands_alone,
        job(array={"size": 2}, start="Gang"),
        {"start": "An array needs start: Independent (or no start), got Gang"},
    ),
    (
        rules.array_stands_alone,
        job(array={"size": 2}, policy="GangIndependent"),
        {"policy": "An array needs start: Independent (or no start), got GangIndependent"},
    ),
    (
        rules.array_stands_alone,
        groups("a", array={"size": 2}),
        {"task_groups": "Must be left out when array is set: an array cannot have task_groups"},
    ),
    *(
        (
            rules.array_copies_are_single,
            job(
                array={"size": 2},
                task_template={**TEMPLATE, "requested_resources": {"cpu_cores": 1, "memory_bytes": 1 << 30, **asked}},
            ),
            {f"{RESOURCES}.{name}": "Must be at most 1 in an array, each copy is one task; got 2"},
        )
        for name, asked in (
            ("machines", {"machines": 2}),
            ("node_selection.count", {"node_selection": {"count": "2"}}),
            ("topology.min_nodes", {"topology": {"min_nodes": 2}}),
        )
    ),
    (rules.array_size_is_its_lists, job(array={}), {"array.size": "Required, unless indices or entries give it"}),
    (
        rules.array_size_is_its_lists,
        job(array={"size": 3, "indices": [1, 2]}),
        {"array.indices": "Must be as many as the array's size (3), got 2"},
    ),
    (
        rules.array_size_is_its_lists,
        job(array={"indices": [1, 2], "entries": ["a"]}),
        {"array.entries": "Must be as many as indices (2), got 1"},
    ),
    (
        rules.array_cap_fits,
        job(array={"entries": ["a", "b"], "max_parallel": 3}),
        {"array.max_parallel": "Must be between 0 and 2 (the array's size), got 3"},
    ),
    (
        rules.array_indices_ascend,
        job(array={"indices": [1, 7, 7]}),
        {"array.indices[2]": "Must be greater than the one before it (7), got 7"},
    ),
    (
        rules.array_entries_fit,
        job(array={"entries": ["x" * 110_000] * 10}),
        {"array.entries": "Must be at most 1 MiB together, got 1.1 MB (1.05 MiB); put the data into a file"},
    ),
    (
        rules.min_available_goes_with_its_start,
        job(start="MinAvailable"),
        {"min_available": "Required with start: MinAvailable"},
    ),
    (
        rules.checkpoint_from_has_a_directory,
        job(checkpoint_from="default.train.1"),
        {"checkpoint_from": "Needs task_template.checkpoint.dir: there the checkpoint is laid out"},
    ),
    (
        rules.min_available_goes_with_its_start,
        job(min_available=1),
        {"min_available": "Only with start: MinAvailable, got start: Independent"},
    ),
    (
        rules.service_never_completes,
        job(lifetime="Service", array={"size": 2}, on_failure="FailJob"),
        {
            "array": "lifetime: Service cannot have an array",
            "on_failure": "lifetime: Service cannot have on_failure: FailJob",
        },
    ),
    (
        rules.service_never_completes,
        groups("a", lifetime="Service", complete_with="a"),
        {"complete_with": "Not with lifetime: Service, which never completes"},
    ),
    (rules.gang_has_no_order, groups("a", ("b", "a"), start="Gang"), {"start": GANG_ORDER}),
    (rules.gang_has_no_order, groups("a", ("b", "a"), policy="Gang"), {"policy": GANG_ORDER}),
    (
        rules.group_names_are_unique,
        groups("a", "b", "a"),
        {"task_groups[2].name": "Group names are unique; task_groups[0] has this one"},
    ),
    (rules.named_groups_exist, job(leader_group="a"), {"leader_group": "Only with task_groups"}),
    (rules.named_groups_exist, job(complete_with="a"), {"complete_with": "Only with task_groups"}),
    (
        rules.named_groups_exist,
        groups("a", ("b", "c"), leader_group="d", complete_with="e"),
        {
            "task_groups[1].depends_on[0].group_name": "Must name one of the job's groups (a, b), got c",
            "leader_group": "Must name one of the job's groups (a, b), got d",
            "complete_with": "Must name one of the job's groups (a, b), got e",
        },
    ),
    (
        rules.named_groups_exist,
        groups("a", ("b", "b")),
        {"task_groups[1].depends_on[0].group_name": "A group cannot depend on itself"},
    ),
    (
        rules.groups_wait_in_no_circle,
        groups("z", ("a", "z", "b"), ("b", "c"), ("c", "b")),
        {"task_groups[2].depends_on": "Groups must not wait for each other in a circle: b -> c -> b"},
    ),
    (
        rules.name_leaves_room_for_groups,
        groups("abc", "a" * 10, name="n" * 47),
        {
            "metadata.name": f"Must be at most 46 characters with the group {'a' * 10} (57 minus its length minus 1), "
            "got 47"
        },
    ),
    (
        rules.job_waits_for_others,
        job(after=[{"job": "default/train"}]),
        {"after[0].job": "A job cannot wait for itself"},
    ),
    (
        rules.counted,
        {"metadata": {"name": "train"}, "spec": {"task_groups": [many("a", 6_000), many("b", 4_001)]}},
        {"task_groups": "A job has at most 10000 tasks, got 10001"},
    ),
    (
        rules.counted,
        groups("a", "b", start="MinAvailable", min_available=3),
        {"min_available": "Must be between 1 and 2 (the job's tasks), got 3"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "detail"), [row[1:] for row in BROKEN], ids=[f"{row[0].__name__}-{n}" for n, row in enumerate(BROKEN)]
)
def test_contradiction_is_refused_with_its_sentence(document: dict[str, Any], detail: dict[str, str]) -> None:
    assert detail_of(document) == detail


def test_every_rule_has_a_document_that_breaks_it() -> None:
    broken = {row[0] for row in BROKEN}
    own = {*rules.SPEC_RULES, rules.name_leaves_room_for_groups, rules.job_waits_for_others, rules.counted}
    assert broken == own


FINE: list[dict[str, Any]] = [
    job(array={"size": 2}, start="Independent"),
    job(array={"size": 2}, policy="Independent"),
    job(array={"size": 2, "indices": [3, 4], "entries": ["a", "b"], "max_parallel": 2}),
    job(start="MinAvailable", min_available=1),
    job(lifetime="Service"),
    job(lifetime="Service", on_failure="RestartJob", start="Gang"),
    groups("a", ("b", "a"), ("c", "a", "b"), leader_group="b", complete_with="c"),
    groups("a", "b", start="Gang"),
    groups("a" * 10, name="n" * 46),
    groups("a", name="n" * 55),
    groups("a" * 55, name="n"),
    groups("a", "b", start="MinAvailable", min_available=2),
    job(after=[{"job": "train.1"}, {"job": "other/train"}, {"job": "other"}]),
]


@pytest.mark.parametrize("document", FINE, ids=range(len(FINE)))
def test_what_only_comes_near_a_rule_is_taken(document: dict[str, Any]) -> None:
    stored = validate(document)
    assert validate(stored) == stored


SETTLED = [
    ({}, ("Independent", "RestartTask", "Independent")),
    ({"start": "Gang"}, ("Gang", "RestartJob", "Gang")),
    ({"start": "Independent"}, ("Independent", "RestartTask", "Independent")),
    ({"start": "MinAvailable", "min_available": 1}, ("MinAvailable", "RestartTask", "Independent")),
    ({"policy": "Gang"}, ("Gang", "RestartJob", "Gang")),
    ({"policy": "GangIndependent"}, ("Gang", "RestartTask", "GangIndependent")),
    ({"policy": "Independent"}, ("Independent", "RestartTask", "Independent")),
    ({"start": "Gang", "on_failure": "RestartTask"}, ("Gang", "RestartTask", "GangIndependent")),
    ({"start": "Gang", "on_failure": "FailJob"}, ("Gang", "FailJob", "Gang")),
    ({"on_failure": "RestartJob"}, ("Independent", "RestartJob", "Independent")),
    ({"on_failure": "FailJob"}, ("Independent", "FailJob", "Independent")),
    ({"start": "Independent", "policy": "Gang"}, ("Independent", "RestartTask", "Independent")),
    ({"on_failure": "RestartTask", "policy": "Gang"}, ("Gang", "RestartTask", "GangIndependent")),
]


@pytest.mark.parametrize(("given", "stored"), SETTLED, ids=lambda each: str(each))
def test_start_on_failure_and_policy_are_stored_in_agreement(given: dict[str, Any], stored: tuple[str, ...]) -> None:
    spec = validate(job(**given))["spec"]
    assert (spec["start"], spec["on_failure"], spec["policy"]) == stored


@pytest.mark.parametrize(
    ("spec", "policy"), [({"lifetime": "Service"}, "Always"), ({"on_failure": "FailJob"}, "Never"), ({}, "OnFailure")]
)
def test_restart_policy_follows_the_job(spec: dict[str, Any], policy: str) -> None:
    assert validate(job(**spec))["spec"]["task_template"]["restart_policy"] == policy
    in_groups = validate(groups("a", "b", **spec))["spec"]["task_groups"]
    assert [group["task_template"]["restart_policy"] for group in in_groups] == [policy, policy]


def test_first_group_leads_unless_another_is_named() -> None:
    assert validate(groups("a", "b"))["spec"]["leader_group"] == "a"
    assert validate(groups("a", "b", leader_group="b"))["spec"]["leader_group"] == "b"
    assert "leader_group" not in validate(job())["spec"]


def test_array_size_is_stored_also_where_a_list_gives_it() -> None:
    assert validate(job(array={"entries": ["a", "b"]}))["spec"]["array"] == {
        "size": 2,
        "max_parallel": 0,
        "entries": ["a", "b"],
    }
    assert validate(job(array={"indices": [2, 4, 6]}))["spec"]["array"]["size"] == 3


def test_each_groups_template_is_judged_under_its_own_path() -> None:
    document = groups("a", "b")
    document["spec"]["task_groups"][1]["task_template"] = {
        "command": "true",
        "args": [1],
        "requested_resources": {"cpu_cores": 1},
        "replicas": 3,
    }
    with pytest.raises(InvalidSpecification) as refused:
        validate(document)
    at = "task_groups[1].task_template"
    assert refused.value.detail == {
        f"{at}.args[0]": 'Must be a text, got 1; quote it: "1"',
        f"{at}.requested_resources.memory_bytes": "Must be given together with cpu_cores",
        f"{at}.replicas": "Unknown field",
    }


def test_model_has_its_own_code_and_an_unknown_field_the_last_word() -> None:
    """Every wrong field is listed, whatever the code says."""
    both = job(model={"name": "llama"}, priority=2_000)
    for document, code in ((both, "MODELS_NOT_SERVED"), (job(model={}, modell=1), "UNKNOWN_FIELD")):
        with pytest.raises(InvalidSpecification) as refused:
            validate(document)
        assert refused.value.code == code
        assert len(refused.value.detail) == 2


def test_operators_defaults_hold_where_the_document_says_nothing() -> None:
    defaults = Defaults(max_restarts=3, max_machine_restarts=4)
    for given, stored in (
        ({}, (3, 4)),
        ({"max_restarts": 10}, (10, 4)),
        ({"max_retries_failure": 0}, (0, 4)),
        ({"max_machine_restarts": 20}, (3, 20)),
    ):
        template = validate(job(task_template={**TEMPLATE, "resilience": given}), defaults)["spec"]["task_template"]
        assert (template["resilience"]["max_restarts"], template["resilience"]["max_machine_restarts"]) == stored
    first = validate(job(), defaults)
    assert validate(first) == validate(first, Defaults()) == first
    with pytest.raises(UsageError, match="between 0 and 1000, got 1001"):
        Defaults(max_restarts=1_001)


def test_ten_thousand_entries_are_judged_quickly() -> None:
    """An array is one document however long: indices, entries and their checks together under half a second."""
    size = limits.ARRAY_SIZE[1]
    document = job(
        array={"indices": list(range(0, 3 * size, 3)), "entries": [f"data/part-{n}.bin" for n in range(size)]}
    )
    validate(job())
    began = time.process_time()
    stored = validate(document)
    assert time.process_time() - began < 0.5
    assert stored["spec"]["array"]["size"] == size


def test_a_hundred_groups_in_one_circle_are_told_quickly() -> None:
    names = [f"g{n}" for n in range(100)]
    listed = [(name, names[n - 1]) for n, name in enumerate(names)]
    began = time.process_time()
    (sentence,) = detail_of(groups(*listed)).values()
    assert time.process_time() - began < 0.5
    assert len(sentence) < 400
