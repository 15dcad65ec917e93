"""What contradicts itself within one worker template, whether it is the job's or a group's.

Each rule is a function that returns its sentences by path. Rules read the document as it was written and pass over
whatever has the wrong type, so that a person learns of a contradiction in the same answer as of a typing mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Any, Final

from stado_like.job.spec import limits, units
from stado_like.job.spec.as_written import bytes_of, entries, part, texts, whole, word
from stado_like.job.spec.rules_resources import asks_for_gpus, resource_contradictions

__all__ = ["bytes_of", "contradictions"]

Complaints = dict[str, str]
Rule = Callable[[Mapping[str, Any], str], Complaints]


def contradictions(template: Mapping[str, Any], at: str) -> Complaints:
    """Every contradiction of a template; `at` is its own path, `task_template` or `task_groups[1].task_template`."""
    found: Complaints = {}
    for rule in RULES:
        for path, sentence in rule(template, at).items():
            found.setdefault(path, sentence)
    return {**found, **resource_contradictions(part(template, "requested_resources"), f"{at}.requested_resources")}


def something_to_run(template: Mapping[str, Any], at: str) -> Complaints:
    """With an image the command may be the image's; without one there is nothing else to run."""
    if template.get("command") is None and template.get("image") is None:
        return {f"{at}.command": "Required without an image: there is nothing else to run"}
    return {}


def pulls_need_an_image(template: Mapping[str, Any], at: str) -> Complaints:
    if template.get("image") is not None:
        return {}
    found: Complaints = {}
    if template.get("pull_policy") in ("Always", "None"):
        found[f"{at}.pull_policy"] = "Needs an image: without one nothing is pulled"
    if isinstance(template.get("registry_secret_ref"), dict):
        found[f"{at}.registry_secret_ref"] = "Needs an image: without one nothing is pulled"
    return found


def strings_fit_the_kernel(template: Mapping[str, Any], at: str) -> Complaints:
    """The kernel's limits on what a program is started with."""
    found: Complaints = {}
    command = template.get("command")
    sizes = [("command", bytes_of(command))] if isinstance(command, str) else []
    sizes += [(f"args[{n}]", bytes_of(each)) for n, each in texts(template, "args")]
    sizes += [
        (f"env.{name}", bytes_of(name) + 1 + bytes_of(value))
        for name, value in part(template, "env").items()
        if isinstance(name, str) and isinstance(value, str)
    ]
    total = 0
    for where, each in sizes:
        total += each + limits.BYTES_PER_STRING
        if each > limits.ONE_STRING_MAX_BYTES:
            found[f"{at}.{where}"] = (
                f"Must be at most 120 KiB ({limits.ONE_STRING_MAX_BYTES} bytes), got {each} bytes; "
                "put the data into a file"
            )
    if total > limits.ALL_STRINGS_MAX_BYTES:
        found[at] = (
            f"command, args and env together must be at most 1 MiB, got {units.size_words(total)}; "
            "put the data into a file"
        )
    return found


def volumes_have_their_paths(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    for n, volume in entries(template, "volumes"):
        kind, host = word(volume, "kind", "EmptyDir"), volume.get("host_path")
        if kind == "Bind" and host is None:
            found[f"{at}.volumes[{n}].host_path"] = "Required for Bind: the machine's path"
        if kind == "EmptyDir" and host is not None:
            found[f"{at}.volumes[{n}].host_path"] = "Only for kind: Bind; an EmptyDir is an empty directory"
    return found


def mounts_are_apart(template: Mapping[str, Any], at: str) -> Complaints:
    """One place holds one thing."""
    found: Complaints = {}
    first: dict[str, str] = {}
    for where, path in _mounts(template):
        place = normpath(path) if path else path
        if place in first:
            found[f"{at}.{where}"] = f"Is already the place of {first[place]}; only one thing can be mounted there"
        else:
            first[place] = where
    return found


def _mounts(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("volumes", "datavolume_refs", "secret_refs"):
        for n, each in entries(template, name):
            if isinstance(each.get("mount_path"), str):
                yield f"{name}[{n}].mount_path", each["mount_path"].replace("//", "/")
    for n, each in entries(template, "configs"):
        for m, path in texts(each, "mounts"):
            yield f"configs[{n}].mounts[{m}]", path.replace("//", "/")


def a_drive_lies_in_its_own_place_once(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    seen: set[str] = set()
    for n, each in entries(template, "datavolume_refs"):
        name = each.get("name")
        if not isinstance(name, str) or each.get("mount_path") is not None:
            continue
        if name in seen:
            found[f"{at}.datavolume_refs[{n}].mount_path"] = (
                f"Required: the drive {name} is mounted at its own place already"
            )
        seen.add(name)
    return found


def secrets_arrive_somewhere(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    for n, each in entries(template, "secret_refs"):
        if each.get("mount_path") is None and each.get("env_vars") in (None, {}):
            found[f"{at}.secret_refs[{n}]"] = "Must have mount_path, env_vars or both, or its value arrives nowhere"
    return found


def a_variable_has_one_secret(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    first: dict[str, str] = {}
    for n, each in entries(template, "secret_refs"):
        for key, variable in part(each, "env_vars").items():
            if not isinstance(key, str) or not isinstance(variable, str):
                continue
            where = f"secret_refs[{n}].env_vars.{key}"
            if variable in first:
                found[f"{at}.{where}"] = f"The variable {variable} is already set by {first[variable]}"
            else:
                first[variable] = where
    return found


def configs_are_written_and_small(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    total = 0
    for n, each in entries(template, "configs"):
        if each.get("mounts") == []:
            found[f"{at}.configs[{n}].mounts"] = "Must have at least one path"
        if isinstance(each.get("value"), str):
            total += bytes_of(each["value"])
    if total > limits.CONFIGS_MAX_BYTES:
        found[f"{at}.configs"] = (
            f"The values together must be at most 1 MiB, got {units.size_words(total)}; ship the files with the job"
        )
    return found


def ulimits_are_in_order(template: Mapping[str, Any], at: str) -> Complaints:
    found: Complaints = {}
    seen: set[str] = set()
    for n, each in entries(part(template, "security_context"), "ulimits"):
        where = f"{at}.security_context.ulimits[{n}]"
        name = each.get("name")
        if isinstance(name, str):
            if name in seen:
                found[f"{where}.name"] = f"{name[:60]} stands twice; give each limit once"
            seen.add(name)
        if each.get("soft") is None or each.get("hard") is None:
            continue
        soft, hard = whole(each, "soft", 0, limits.ULIMIT), whole(each, "hard", 0, limits.ULIMIT)
        if soft is not None and hard is not None and hard != -1 and (soft == -1 or soft > hard):
            found[f"{where}.soft"] = f"Must be at most hard ({hard}), got {'unlimited (-1)' if soft == -1 else soft}"
    return found


def capabilities_are_added_or_dropped(template: Mapping[str, Any], at: str) -> Complaints:
    security = part(template, "security_context")
    added = {name.removeprefix("CAP_") for _, name in texts(security, "cap_add")}
    return {
        f"{at}.security_context.cap_drop[{n}]": f"{name[:60]} is also in cap_add; give it once"
        for n, name in texts(security, "cap_drop")
        if name.removeprefix("CAP_") in added
    }


_PROBES: Final = {
    "HTTP": (("path", "port"), ("command",)),
    "TCP": (("port",), ("path", "command")),
    "Exec": (("command",), ("path", "port")),
}


def a_probe_has_what_its_type_needs(template: Mapping[str, Any], at: str) -> Complaints:
    probe = part(template, "health_check")
    kind = probe.get("type")
    if not isinstance(kind, str) or kind not in _PROBES:
        return {}
    required, foreign = _PROBES[kind]
    found = {f"{at}.health_check.{name}": f"Required for {kind}" for name in required if probe.get(name) is None}
    for name in foreign:
        if probe.get(name) is not None:
            of = " and ".join(other for other, (needed, _) in _PROBES.items() if name in needed)
            found[f"{at}.health_check.{name}"] = f"Only for {of}, and the type is {kind}"
    if probe.get("command") == [] and kind == "Exec":
        found[f"{at}.health_check.command"] = "Must have at least one entry, the program"
    return found


def a_probe_ends_before_the_next(template: Mapping[str, Any], at: str) -> Complaints:
    probe = part(template, "health_check")
    if not probe:
        return {}
    interval = whole(probe, "interval_seconds", limits.DEFAULT_PROBE_INTERVAL_S, limits.PROBE_INTERVAL_S)
    timeout = whole(probe, "timeout_seconds", limits.DEFAULT_PROBE_TIMEOUT_S, limits.PROBE_TIMEOUT_S)
    if interval is None or timeout is None or timeout < interval:
        return {}
    said = "" if probe.get("timeout_seconds") is not None else ", its default"
    sentence = f"Must be less than interval_seconds ({interval}), got {timeout}{said}"
    return {f"{at}.health_check.timeout_seconds": sentence}


def sandboxes_are_closed(template: Mapping[str, Any], at: str) -> Complaints:
    if template.get("isolation") != "sandbox":
        return {}
    security = part(template, "security_context")
    against = [
        ("GPUs", asks_for_gpus(part(template, "requested_resources")) is True),
        ("security_context.privileged", security.get("privileged") is True),
        ("security_context.pid_mode: host", security.get("pid_mode") == "host"),
        ("security_context.ipc_mode: host", security.get("ipc_mode") == "host"),
    ]
    broken = [name for name, given in against if given]
    return {f"{at}.isolation": f"sandbox cannot be combined with {' or '.join(broken)}"} if broken else {}


def egress_says_what_it_allows(template: Mapping[str, Any], at: str) -> Complaints:
    egress = part(part(template, "network"), "egress")
    here = f"{at}.network.egress"
    found: Complaints = {}
    default = word(egress, "default", "allow")
    for n, each in entries(egress, "allow"):
        host, cidr = each.get("host"), each.get("cidr")
        if host is None and cidr is None:
            found[f"{here}.allow[{n}].host"] = "Required unless cidr is given"
            found[f"{here}.allow[{n}].cidr"] = "Required unless host is given; every address is 0.0.0.0/0"
        if host is not None and cidr is not None:
            found[f"{here}.allow[{n}]"] = "Must have host or cidr, not both; write two entries"
    if default == "allow" and egress.get("allow"):
        found[f"{here}.allow"] = "Has no effect under default: allow, which allows everything; write default: deny"
    if default == "deny" and egress.get("cluster") == "all":
        found[f"{here}.cluster"] = (
            "Must be none or namespace under default: deny; a job does not reach the tasks of other workspaces"
        )
    return found


def egress_can_be_enforced(template: Mapping[str, Any], at: str) -> Complaints:
    """Who may change the machine's network, or enter another process, is not held by a policy."""
    egress = part(part(template, "network"), "egress")
    if egress.get("default") != "deny" and egress.get("cluster") not in ("none", "namespace"):
        return {}
    security = part(template, "security_context")
    added = {name.removeprefix("CAP_") for _, name in texts(security, "cap_add")}
    against = [
        ("privileged", security.get("privileged") is True),
        ("cap_add: [NET_ADMIN]", "NET_ADMIN" in added),
        ("cap_add: [ALL]", "ALL" in added),
        ("pid_mode: host", security.get("pid_mode") == "host"),
    ]
    broken = [f"security_context.{name}" for name, given in against if given]
    if not broken:
        return {}
    return {f"{at}.network.egress": f"A policy that restricts cannot be combined with {' or '.join(broken)}"}


def backoff_grows(template: Mapping[str, Any], at: str) -> Complaints:
    given = part(template, "resilience")
    first = whole(given, "backoff_seconds", limits.DEFAULT_BACKOFF_S, limits.BACKOFF_S)
    longest = whole(given, "max_backoff_seconds", limits.BACKOFF_S[1], limits.BACKOFF_S)
    if first is None or longest is None or longest >= first:
        return {}
    return {f"{at}.resilience.max_backoff_seconds": f"Must be at least backoff_seconds ({first}), got {longest}"}


def one_budget_has_one_number(template: Mapping[str, Any], at: str) -> Complaints:
    given = part(template, "resilience")
    ours, theirs = whole(given, "max_restarts", -1), whole(given, "max_retries_failure", -1)
    if ours is None or theirs is None or ours < 0 or theirs < 0 or ours == theirs or max(ours, theirs) > 1_000:
        return {}
    sentence = f"Is another name of max_restarts, and they differ: {theirs} and {ours}; give one of them"
    return {f"{at}.resilience.max_retries_failure": sentence}


def the_warning_comes_before_the_limit(template: Mapping[str, Any], at: str) -> Complaints:
    warning = part(template, "resilience").get("signal_before_limit")
    if not isinstance(warning, dict):
        return {}
    where = f"{at}.resilience.signal_before_limit"
    if template.get("time_limit_seconds") is None:
        return {where: "Needs time_limit_seconds: without a limit there is nothing to warn of"}
    limit = whole(template, "time_limit_seconds", 0, limits.TIME_LIMIT_S)
    before = whole(warning, "seconds", limits.DEFAULT_SIGNAL_BEFORE_LIMIT_S, limits.SIGNAL_BEFORE_LIMIT_S)
    if limit is None or before is None or before < limit:
        return {}
    said = "" if warning.get("seconds") is not None else ", its default"
    return {f"{where}.seconds": f"Must be less than time_limit_seconds ({limit}), got {before}{said}"}


def what_is_never_restarted_is_not_when_stalled(template: Mapping[str, Any], at: str) -> Complaints:
    stall = part(part(template, "resilience"), "stall")
    if template.get("restart_policy") == "Never" and stall.get("restart") is True:
        sentence = "Cannot be combined with restart_policy: Never, which restarts nothing; write OnFailure"
        return {f"{at}.resilience.stall.restart": sentence}
    if stall.get("restart") is True and whole(stall, "after_seconds", limits.DEFAULT_STALL_AFTER_S) == 0:
        return {
            f"{at}.resilience.stall.restart": "Has no effect with after_seconds: 0, which never calls a task stalled"
        }
    return {}


RULES: Final[tuple[Rule, ...]] = (
    something_to_run,
    pulls_need_an_image,
    strings_fit_the_kernel,
    volumes_have_their_paths,
    mounts_are_apart,
    a_drive_lies_in_its_own_place_once,
    secrets_arrive_somewhere,
    a_variable_has_one_secret,
    configs_are_written_and_small,
    ulimits_are_in_order,
    capabilities_are_added_or_dropped,
    a_probe_has_what_its_type_needs,
    a_probe_ends_before_the_next,
    sandboxes_are_closed,
    egress_says_what_it_allows,
    egress_can_be_enforced,
    backoff_grows,
    one_budget_has_one_number,
    the_warning_comes_before_the_limit,
    what_is_never_restarted_is_not_when_stalled,
)
