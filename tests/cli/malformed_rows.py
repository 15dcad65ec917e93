"""Documents as people and attackers send them: malformed ones with what their refusal must say, and look-alikes that
are good.

A row is a file's name (which decides how it is read; `-` is standard input), its bytes, and words of the one error; or,
for the good ones, where to look in the stored template and what must be there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Body = str | bytes
RUN = 'metadata: {name: a}\nspec: {task_template: {command: "true", args: [%s]}}\n'
OK: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"task_template": {"command": "true"}}}


def yaml(at: str) -> str:
    """A document that is good but for `at`, a line of its task template."""
    return f'metadata: {{name: a}}\nspec:\n  task_template:\n    command: "true"\n    {at}\n'


def spec(at: str) -> str:
    return f'metadata: {{name: a}}\nspec:\n  {at}\n  task_template: {{command: "true"}}\n'


def metadata(at: str) -> str:
    return f'metadata: {{{at}}}\nspec: {{task_template: {{command: "true"}}}}\n'


def as_json(**at: Any) -> str:
    return json.dumps({**OK, **at})


def template(**at: Any) -> str:
    return json.dumps({**OK, "spec": {"task_template": {"command": "true", **at}}})


def groups(*names: str, **spec: Any) -> str:
    listed = [{"name": name, "task_template": {"command": "x"}} for name in (*names, "p")]
    return json.dumps({"metadata": {"name": "a"}, "spec": {"task_groups": listed, **spec}})


def waiting(graph: dict[str, list[str]]) -> str:
    listed = [
        {"name": name, "task_template": {"command": "x"}, "depends_on": [{"group_name": each} for each in others]}
        for name, others in graph.items()
    ]
    return json.dumps({"metadata": {"name": "a"}, "spec": {"task_groups": listed}})


def laughs(kind: str) -> str:
    """Nine lines that stand for a billion texts."""
    opening, closing = ("[", "]") if kind == "lists" else ("{", "}")

    def ten(of: str) -> str:
        return ", ".join(f"{f'k{n}: ' if kind == 'mappings' else ''}{of}" for n in range(10))

    lines = [f"a0: &a0 {opening}{ten('lol')}{closing}"]
    lines += [f"a{n}: &a{n} {opening}{ten(f'*a{n - 1}')}{closing}" for n in range(1, 10)]
    return "\n".join(lines)


NESTED_JSON = '{"metadata": {"name": "a"}, "spec": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"

MALFORMED: dict[str, tuple[str, Body, str]] = {
    # ---- bombs
    "laughs of lists": ("r.yaml", laughs("lists"), "its aliases stand for more than"),
    "laughs of mappings": ("r.yaml", laughs("mappings"), "its aliases stand for more than"),
    "laughs in an argument": ("r.yaml", yaml(f"args: [&a {'x' * 99_000}, {', '.join(['*a'] * 20)}]"), "aliases stand"),
    "one long text, many times": ("r.yaml", f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 999}*a]", "aliases stand for more"),
    "alias of itself": ("r.yaml", yaml("args: &a [*a]"), "contains itself"),
    "alias of what is around it": ("r.yaml", "metadata: &m {name: a, labels: {x: *m}}\nspec: {}", "contains itself"),
    "alias without an anchor": ("r.yaml", yaml("args: [*nowhere]"), "has no anchor before it"),
    "anchor that comes later": ("r.yaml", yaml("args: [*late, &late x]"), "has no anchor before it"),
    "many anchors": ("r.yaml", "&a " * 200_000, "not YAML"),
    "deep lists": ("r.yaml", yaml("args: " + "[" * 100_000 + "]" * 100_000), "nest"),
    "deep mappings": ("r.yaml", "{a: " * 100_000 + "1" + "}" * 100_000, "nested too deep"),
    "deep dashes": ("r.yaml", "- " * 400_000, "nested too deep"),
    "deep questions": ("r.yaml", "? " * 400_000, "a key must be a text, not a list or mapping"),
    "deep lines": ("r.yaml", "".join(" " * n + "a:\n" for n in range(1000)), "nested too deep"),
    "deep but short of the parser": ("r.yaml", yaml("args: " + "[" * 63 + "]" * 63), "nested too deep"),
    "deep JSON": ("r.json", NESTED_JSON, "nested too deep"),
    "deep JSON that never ends": ("r.json", '{"a":' * 150_000, "nested too deep"),
    "deep JSON lists on standard input": ("-", '{"a":' + "[" * 500_000, "nested too deep"),
    "JSON a little deep": ("r.json", template(args=json.loads("[" * 62 + "]" * 62)), "nested too deep"),
    "10 MB of arguments": ("r.yaml", RUN % ("x, " * 3_500_000), "a specification has at most 1 MiB"),
    "10 MB of white space": ("r.yaml", " " * 10_000_000, "a specification has at most 1 MiB"),
    "10 MB of JSON": ("r.json", template(args=["x"] * 2_100_000), "a specification has at most 1 MiB"),
    "just above 1 MiB": ("r.yaml", (RUN % "x") + "#" * (1 << 20), "a specification has at most 1 MiB"),
    # ---- keys
    "a key twice": ("r.yaml", yaml("args: []\n    args: [x]"), "the key `args` stands twice"),
    "a key twice in JSON": ("r.json", '{"metadata": {"name": "a", "name": "b"}, "spec": {}}', "stands twice"),
    "a key twice, once escaped": ("r.json", '{"spec": 1, "s\\u0070ec": 2}', "the key `spec` stands twice"),
    "a key twice by an alias": ("r.yaml", yaml("env: {&k A: x, *k : y}"), "the key `A` stands twice"),
    "a merge key": ("r.yaml", "x: &x {command: y}\nspec:\n  task_template: {<<: *x}", "merge keys"),
    "a key that is a number": ("r.yaml", yaml("env: {1: x}"), "a key must be a text, got 1"),
    "a key that is null": ("r.yaml", "~: x", "a key must be a text, got None"),
    "a key that is a list": ("r.yaml", "? [a, b]\n: x", "a key must be a text, not a list"),
    "a key of 900,000 letters": ("r.yaml", "k" * 900_000 + ": 1", ""),
    "a key of 900,000 letters in JSON": ("r.json", json.dumps({**OK, "k" * 900_000: 1}), "Unknown field"),
    "a key with control characters": ("r.json", json.dumps({**OK, "\x1b[31m\n\0": 1}), "Unknown field"),
    "an empty key": ("r.json", as_json(**{"": 1}), "Unknown field"),
    "30,000 unknown fields": ("r.json", as_json(**{f"field_{n}": n for n in range(30_000)}), "and 29800 more"),
    "30,000 unknown fields, deep": ("r.json", template(**{f"f{n}": n for n in range(30_000)}), "and 29800 more"),
    "20,000 wrong variables": ("r.json", template(env={f"{n}": n for n in range(20_000)}), "and 39800 more"),
    "30,000 labels": ("r.json", as_json(metadata={"name": "a", "labels": {f"l{n}": "" for n in range(30_000)}}), "64"),
    "a field in the wrong place": ("r.json", as_json(command="x"), "it belongs at"),
    "__proto__": ("r.json", as_json(__proto__={"x": 1}), "Unknown field"),
    "__class__": ("r.json", template(__class__="x", __dict__={}), "Unknown field"),
    # ---- numbers
    "NaN in JSON": ("r.json", '{"metadata": {"name": "a"}, "spec": {"priority": NaN}}', "NaN is not a number"),
    "Infinity in JSON": ("r.json", '{"spec": {"priority": Infinity}}', "Infinity is not a number"),
    "-Infinity in JSON": ("r.json", '{"spec": {"priority": -Infinity}}', "-Infinity is not a number"),
    "NaN in YAML": ("r.yaml", spec("priority: .nan"), ".nan is not a number"),
    "infinity in YAML": ("r.yaml", spec("priority: -.inf"), "-.inf is not a number"),
    "a float too large in JSON": ("r.json", '{"spec": {"priority": 1e400}}', "1e400 is not a number"),
    "a float too large in YAML": ("r.yaml", spec("priority: 1e400"), "1e400 is not a number"),
    "an integer of 20 digits": ("r.yaml", spec("priority: " + "9" * 20), "Must be between -1000 and 1000"),
    "an integer of 300 digits": ("r.json", as_json(spec={"priority": int("9" * 300)}), "more than 30 digits"),
    "an integer of 5,000 digits": ("r.json", '{"spec": ' + "9" * 5000 + "}", "an integer of 5000 digits"),
    "an integer of 900,000 digits": ("r.json", '{"spec": ' + "9" * 900_000 + "}", "an integer of 900000 digits"),
    "an integer of 900,000 digits in YAML": ("r.yaml", spec("priority: " + "9" * 900_000), "Must be an integer"),
    "a hexadecimal of 300 digits": ("r.yaml", spec("priority: 0x" + "f" * 300), "more than 30 digits"),
    "a float where an integer is due": ("r.yaml", spec("priority: 1.5"), "Must be an integer"),
    "a whole float": ("r.json", as_json(spec={"priority": 1.0}), "Must be an integer"),
    "a text where an integer is due": ("r.yaml", spec("priority: '1'"), "Must be an integer"),
    "true where an integer is due": ("r.yaml", spec("priority: true"), "Must be an integer"),
    "a sexagesimal where seconds are due":
        ("r.yaml", yaml("time_limit_seconds: 1:30"), 'got the text "1:30"; write 90'),
    "underscores where an integer is due": ("r.yaml", spec("priority: 1_0"), "Must be an integer"),
    "minus zero size": ("r.json", template(requested_resources={"cpu_cores": -0.0, "memory_bytes": 1}), "greater"),
    # ---- words that are other things elsewhere
    "yes where true is due": ("r.yaml", spec("exclusive: yes"), 'Must be true or false, got the text "yes"'),
    "no where false is due": ("r.yaml", spec("exclusive: no"), 'Must be true or false, got the text "no"'),
    "1 where true is due": ("r.yaml", spec("exclusive: 1"), "Must be true or false, got 1"),
    "true where a text is due": ("r.yaml", yaml("args: [true]"), "Must be a text, got true"),
    "null where a text is due": ("r.yaml", yaml("args: [~]"), "Must be a text, got null"),
    "a number where a text is due": ("r.yaml", yaml("env: {PORT: 8080}"), 'quote it: "8080"'),
    "a date where seconds are due": ("r.yaml", yaml("time_limit_seconds: 2024-01-01"), "Must be an integer"),
    "a date as a tag": ("r.yaml", yaml("args: [!!timestamp 2024-01-01]"), "the tag"),
    # ---- encodings
    "UTF-16 with its mark": ("r.yaml", (RUN % "x").encode("utf-16"), "the mark of UTF-16"),
    "UTF-16 without a mark": ("r.yaml", (RUN % "x").encode("utf-16-le"), "U+0000"),
    "UTF-16 the other way round": ("r.yaml", (RUN % "x").encode("utf-16-be"), "U+0000"),
    "UTF-32": ("r.json", as_json().encode("utf-32"), "the mark of UTF-16 or UTF-32"),
    "UTF-16 JSON without a mark": ("r.json", as_json().encode("utf-16-le"), "U+0000"),
    "Latin-1": ("r.yaml", (RUN % "ü").encode("latin-1"), "is not UTF-8: byte 0xfc"),
    "cut UTF-8": ("r.yaml", (RUN % "x").encode() + b"# \xe2\x82", "is not UTF-8"),
    "overlong UTF-8": ("r.yaml", (RUN % "x").encode() + b"# \xc0\xaf", "is not UTF-8"),
    "a surrogate in UTF-8": ("r.yaml", (RUN % "x").encode() + b"# \xed\xa0\x80", "is not UTF-8"),
    "half a surrogate pair in JSON": ("r.json", '{"metadata": {"name": "\\ud800"}, "spec": {}}', ""),
    "half a surrogate pair in an argument": ("r.json", template(args=["\ud800"]), "half a surrogate pair"),
    "half a surrogate pair as a key": ("r.json", template(env={"\ud800": "x"}), ""),
    "half a surrogate pair as a field": ("r.json", as_json(spec={"\ud800": 1}), "A field's name must be valid Unicode"),
    "half a surrogate pair in YAML": ("r.yaml", yaml('args: ["\\ud800"]'), ""),
    "NUL": ("r.yaml", (RUN % "x") + "\0", "the character U+0000"),
    "NUL by an escape": ("r.yaml", yaml('args: ["\\0"]'), "Must not contain a NUL character"),
    "NUL by an escape in JSON": ("r.json", template(env={"A": "\0"}), "Must not contain a NUL character"),
    "escape sequences": ("r.yaml", RUN % "\x1b]0;owned\x07", "the character U+001B"),
    "a bell in JSON": ("r.json", '{"a": "\x07"}', "the character U+0007"),
    "two marks": ("r.yaml", b"\xef\xbb\xbf\xef\xbb\xbfa: 1", ""),
    "a mark in the middle": ("r.json", b'{"metadata": \xef\xbb\xbf{}}', ""),
    "a picture": ("r.yaml", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "is not UTF-8"),
    "a program": ("r.yaml", b"\x7fELF\x02\x01\x01" + bytes(5000), "the character U+007F"),
    "gzip": ("r.json", b"\x1f\x8b\x08\x00" + bytes(range(256)), "is not UTF-8"),
    # ---- shapes of a file
    "an empty file": ("r.yaml", "", "holds nothing"),
    "an empty JSON file": ("r.json", "", "is not JSON"),
    "nothing on standard input": ("-", "", "standard input holds nothing"),
    "only comments": ("r.yaml", "# a\n# b\n", "holds nothing"),
    "only dashes": ("r.yaml", "---\n...\n", "holds nothing"),
    "white space": ("r.yaml", "  \n\n  ", "holds nothing"),
    "a list": ("r.yaml", "- metadata: {name: a}\n", "holds a list"),
    "a list in JSON": ("r.json", f"[{as_json()}]", "holds a list"),
    "a text": ("r.yaml", "hello world", "holds a text"),
    "null": ("r.json", "null", "holds nothing"),
    "an empty mapping": ("r.json", "{}", "Required"),
    "two documents": ("r.yaml", (RUN % "x") + "---\n" + (RUN % "y"), "a second document begins"),
    "two JSON documents": ("r.json", as_json() + as_json(), "is not JSON"),
    "JSON lines": ("r.json", "\n".join([as_json()] * 3), "is not JSON"),
    "JSON that is cut": ("r.json", as_json()[:-9], "is not JSON"),
    "JSON with a comma at its end": ("r.json", as_json()[:-1] + ",}", "is not JSON"),
    "JSON with comments": ("r.json", "// mine\n" + as_json(), "is not JSON"),
    "JSON in single quotes": ("r.json", as_json().replace('"', "'"), "is not JSON"),
    "a tab as indentation": ("r.yaml", "metadata:\n\tname: a\n", "is not YAML: line 2"),
    "broken indentation": ("r.yaml", "metadata:\n  name: a\n spec: {}", "is not YAML: line 3"),
    "an open bracket": ("r.yaml", yaml("args: [a, b"), "is not YAML"),
    "an open quote": ("r.yaml", yaml('args: ["a'), "is not YAML"),
    "HTML": ("r.yaml", "<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n", ""),
    "a script": ("r.yaml", "#!/bin/bash\n#SBATCH -N 2\nsrun hostname\n", "holds a text"),
    "TOML": ("r.yaml", '[metadata]\nname = "a"\n', ""),
    "a directive": ("r.yaml", "%YAML 3.0\n---\na: 1", ""),
    # ---- tags
    "a tag that runs": ("r.yaml", yaml("args: !!python/object/apply:os.system [touch owned]"), "is not read"),
    "a tag that makes": ("r.yaml", yaml("args: [!!python/name:os.system x]"), "is not read"),
    "a tag of one's own": ("r.yaml", yaml("args: [!vault x]"), "the tag `!vault` is not read"),
    "a tag with a handle": ("r.yaml", "%TAG ! tag:x,2000:\n---\na: !foo b", "is not read"),
    "binary": ("r.yaml", yaml("args: [!!binary aGk=]"), "is not read"),
    "a set": ("r.yaml", yaml("args: !!set {a, b}"), "is not read"),
    "an integer by its tag": ("r.yaml", spec("priority: !!int '1'"), "is not read"),
    # ---- wrong kinds everywhere
    "metadata is a list": ("r.json", as_json(metadata=[]), "Must be a mapping, got a list"),
    "metadata is null": ("r.json", as_json(metadata=None), "Must be a mapping, got null"),
    "spec is a text": ("r.json", as_json(spec="x"), "Must be a mapping, got the text"),
    "spec is a number": ("r.json", as_json(spec=5), "Must be a mapping, got 5"),
    "the template is a list": ("r.json", as_json(spec={"task_template": [{}]}), "Must be a mapping, got a list"),
    "the command is a list": ("r.json", template(command=["true"]), "Must be a text, got a list"),
    "the command is a mapping": ("r.json", template(command={}), "Must be a text, got a mapping"),
    "the command is empty": ("r.json", template(command=""), "Must not be empty"),
    "args is a text": ("r.json", template(args="x"), "Must be a list, got the text"),
    "args is a mapping": ("r.json", template(args={"0": "x"}), "Must be a list, got a mapping"),
    "args holds lists": ("r.json", template(args=[["x"]]), "Must be a text, got a list"),
    "env is a list": ("r.json", template(env=["A=1"]), "Must be a mapping, got a list"),
    "env holds a mapping": ("r.json", template(env={"A": {}}), "Must be a text, got a mapping"),
    "resources are a number": ("r.json", template(requested_resources=8), "Must be a mapping, got 8"),
    "labels are a list": ("r.json", as_json(metadata={"name": "a", "labels": []}), "Must be a mapping, got a list"),
    "a label is null": ("r.json", as_json(metadata={"name": "a", "labels": {"a": None}}), "Must be a text, got null"),
    "the array is a number": ("r.json", as_json(spec={**OK["spec"], "array": 5}), "Must be a mapping, got 5"),
    "a group's name is named elsewhere": (
        "r.json",
        groups("\x1b[31m\n", leader_group="w", complete_with="z"),
        "Must name one of the job's groups (\\x1b[31m\\n, p)",
    ),
    "a group's name is half a surrogate pair": ("r.json", groups("\ud800", leader_group="w"), "(\\ud800, p)"),
    "a group's name of 90,000 letters": ("r.json", groups("x" * 90_000, leader_group="w"), "Must name one of"),
    "3,000 groups": ("r.json", groups(*(f"g{n}" for n in range(3_000)), leader_group="w"), ""),
    "groups that wait for each other": ("r.json", waiting({"a": ["b"], "b": ["c"], "c": ["a"]}), "a"),
    "2,000 groups in a ring": (
        "r.json", waiting({f"g{n}": [f"g{(n + 1) % 2_000}"] for n in range(2_000)}), ""
    ),
    "groups are a mapping": ("r.json", as_json(spec={"task_groups": {"w": {}}}), "Must be a list, got a mapping"),
    "groups are texts": ("r.json", as_json(spec={"task_groups": ["w", "p"]}), "Must be a mapping, got the text"),
    "900,000 copies": ("r.json", as_json(spec={**OK["spec"], "array": {"size": 900_000}}), "between 1 and 10000"),
    "indices that go down": ("r.json", as_json(spec={**OK["spec"], "array": {"indices": [3, 1]}}), ""),
    "150,000 indices": ("r.json", as_json(spec={**OK["spec"], "array": {"indices": [*range(150_000)]}}), ""),
    "an index that is true": ("r.json", as_json(spec={**OK["spec"], "array": {"indices": [0, True]}}), "got true"),
    "entries that are numbers": ("r.json", as_json(spec={**OK["spec"], "array": {"entries": [1, 2]}}), "quote it"),
    "a volume out of its folder": (
        "r.json", template(image="x", volumes=[{"kind": "Bind", "host_path": "/a/../b", "mount_path": "/m"}]), ".."
    ),
    "the name is a number": ("r.yaml", metadata("name: 1"), 'Must be a text, got 1; quote it: "1"'),
    "the name is a path": ("r.yaml", metadata("name: ../../etc/passwd"), "Must be letters, digits"),
    "the name has a newline": ("r.yaml", metadata('name: "a\\n"'), "Must be letters, digits"),
    "the name has 900,000 letters": ("r.yaml", metadata("name: " + "a" * 900_000), ""),
    "the workspace is a path": ("r.yaml", metadata("name: a, workspace: ../b"), "Must be lower-case"),
    "an argument of 200,000 letters": ("r.json", template(args=["x" * 200_000]), "Must be at most 120 KiB"),
    "100,000 arguments": ("r.json", template(args=["x"] * 100_000), "Must have at most 65536 entries, got 100000"),
}  # fmt: skip


def _grown(size: int) -> str:
    return RUN % ", ".join(["x"] * size)


VALID: dict[str, tuple[str, Body, Callable[[Any], object], object]] = {
    "no, yes, on and off are texts": (
        "r.yaml", RUN % "no, yes, on, off, y, n, NO", lambda t: t["args"], ["no", "yes", "on", "off", "y", "n", "NO"]
    ),
    "times, dates and underscores are texts": (
        "r.yaml", RUN % "1:30, 12:30:45, 2024-01-01, 1_000, 0b1, 1.2.3",
        lambda t: t["args"], ["1:30", "12:30:45", "2024-01-01", "1_000", "0b1", "1.2.3"],
    ),
    "quoted numbers are texts": ("r.yaml", yaml("env: {PORT: '8080', N: \"1e3\"}"), lambda t: t["env"],
                                 {"PORT": "8080", "N": "1e3"}),
    "words that look like numbers": ("r.yaml", RUN % "nan, inf, .5.5, 0x, 1e", lambda t: t["args"],
                                     ["nan", "inf", ".5.5", "0x", "1e"]),
    "octal and hexadecimal": ("r.yaml", yaml("time_limit_seconds: 0x3c"), lambda t: t["time_limit_seconds"], 60),
    "a number with leading zeros": ("r.yaml", yaml("time_limit_seconds: 0060"), lambda t: t["time_limit_seconds"], 60),
    "the tag of a text": ("r.yaml", RUN % "!!str 5, ! 6", lambda t: t["args"], ["5", "6"]),
    "aliases within bounds": ("r.yaml", yaml("args: [&a x, *a, *a]"), lambda t: t["args"], ["x", "x", "x"]),
    "a merge key that is a text": ("r.yaml", RUN % "<<", lambda t: t["args"], ["<<"]),
    "an anchor that nobody names": ("r.yaml", yaml("args: &unused [x]"), lambda t: t["args"], ["x"]),
    "a mark of UTF-8": ("r.yaml", b"\xef\xbb\xbf" + (RUN % "x").encode(), lambda t: t["args"], ["x"]),
    "a mark before JSON": ("r.json", b"\xef\xbb\xbf" + template(args=["x"]).encode(), lambda t: t["args"], ["x"]),
    "line ends of Windows": ("r.yaml", yaml("args:\n    - x").replace("\n", "\r\n"), lambda t: t["args"], ["x"]),
    "tabs between tokens": ("r.yaml", yaml("args:\t[x,\ty]\t# z"), lambda t: t["args"], ["x", "y"]),
    "tabs in JSON": ("-", template(args=["x"]).replace(" ", "\t"), lambda t: t["args"], ["x"]),
    "JSON in a file of YAML": ("r.yaml", template(args=["x"]), lambda t: t["args"], ["x"]),
    "one document between its marks":
        ("r.yaml", "%YAML 1.2\n---\n" + (RUN % "x") + "...\n", lambda t: t["args"], ["x"]),
    "escapes in quotes": ("r.yaml", yaml(r'args: ["\x1b[0m\t\u00fc\n"]'), lambda t: t["args"], ["\x1b[0m\tü\n"]),
    "a whole surrogate pair": ("r.json", template(args=["\U0001f600"]), lambda t: t["args"], ["\U0001f600"]),
    "emoji as they are": ("r.yaml", RUN % "\U0001f600 ü", lambda t: t["args"], ["\U0001f600 ü"]),
    "a block of lines": ("r.yaml", yaml("args:\n    - |\n      a: b\n      - c"), lambda t: t["args"], ["a: b\n- c\n"]),
    "an argument of 100,000 letters": ("r.json", template(args=["x" * 100_000]), lambda t: len(t["args"][0]), 100_000),
    "an empty list and an empty mapping": ("r.yaml", yaml("args: []\n    env: {}"), lambda t: t["env"], {}),
    "60,000 arguments": ("r.yaml", _grown(60_000), lambda t: len(t["args"]), 60_000),
    "a document of nearly 1 MiB": ("r.yaml", (RUN % "x") + "#" * 1_048_000, lambda t: t["args"], ["x"]),
    "a huge integer as a text": ("r.yaml", RUN % ("9" * 5_000), lambda t: len(t["args"][0]), 5_000),
    "an empty argument and an empty variable": ("r.yaml", yaml('args: [""]\n    env: {A: ""}'), lambda t: t["env"],
                                                {"A": ""}),
    "a document that is mostly comments": ("r.yaml", "# a\n" * 10_000 + RUN % "x", lambda t: t["args"], ["x"]),
}  # fmt: skip
