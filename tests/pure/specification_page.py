"""docs/specification.md, made from the models: `scripts/specification` writes it, a test compares it.

Only the prose between the tables is written here; what a field is, and its class, is read off the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from stado_like.job.spec.standing import Standing, classes

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "specification.md"

BEGINNING = """\
# The run specification

What a job may ask for. A document is a mapping with `metadata` (what the job is called) and `spec` (what it runs, and
how its tasks start, fail and end), written in YAML or JSON and submitted with `stado job submit -f FILE`; the options
of `stado job submit` build the same document. `stado job schema` prints it as a JSON Schema, for an editor. This page
is made from the models by `scripts/specification`; a test compares the two.

- Sizes are integers in bytes, durations integers in seconds. There is no conversion of kinds: `"5"` is not 5, `5.0`
  is not 5, `1` is not true.
- An unknown field is refused, never ignored; all mistakes of a document are told at once, each with its path: below
  `spec` without that word, `metadata.…` with it.
- What is stored is the document with all defaults applied. Submitted again, it is stored unchanged. A field whose
  default is none is left out; `null` says the same as leaving it out.
- A list of mappings is written `volumes[]` here; `task_groups[].task_template` has the fields of `task_template`.

## Classes

Every field is of exactly one class.

| class | what it means |
|---|---|
| acts | The field does what its line says. Words after `not yet:` are accepted, and not yet acted upon. |
| later | Accepted, checked and stored; not yet acted upon. |
| marked | Accepted, checked and stored; nothing acts on it, for the sake of documents from elsewhere. |
| refused | Refused with a sentence that says what to use instead. The default is accepted. |

`stado job submit` prints `accepted, not yet acted upon: …` with every such field or word that a document sets to
something other than its default. A job that needs one of them to run as it was asked waits, and says for what.
"""

END = """\
## Defaults of `start`, `on_failure` and `policy`

| given | `start` becomes | `on_failure` becomes |
|---|---|---|
| neither, and no `policy` | `Independent` | `RestartTask` |
| only `start: Gang` | `Gang` | `RestartJob` |
| only `start: MinAvailable` or `Independent` | as given | `RestartTask` |
| `policy: Gang` | `Gang` | `RestartJob` |
| `policy: GangIndependent` | `Gang` | `RestartTask` |

Where both vocabularies speak, `start` and `on_failure` win, and `policy` is stored as what matches them: `Gang` or
`GangIndependent` with `start: Gang`, else `Independent`.

## What the fields of a job say about each other

- `task_template` is required unless `task_groups` is set, and left out when it is.
- An array needs `start: Independent` (or no `start`) and cannot have `task_groups`. `array.size` may be left out
  where `indices` or `entries` give it; all that are given have the same length. Indices ascend.
- `checkpoint_from` needs a `checkpoint.dir`.
- `start: MinAvailable` needs `min_available`, and nothing else may have it; where the document alone says the number
  of tasks, it is at most that. A job has at most 10000 tasks.
- `lifetime: Service` makes every `restart_policy` `Always`, and has no array, no `on_failure: FailJob`, no
  `complete_with`. `on_failure: FailJob` makes every `restart_policy` `Never`.
- Group names are unique. `depends_on`, `leader_group` and `complete_with` name groups that exist; no group waits for
  itself, nor groups for each other in a circle. `start: Gang` cannot have `depends_on`.
- With groups the job's name has at most 57 characters minus the longest group's name minus 1.
- A job does not wait for itself (`after`).
- `max_restarts` and `max_machine_restarts` that are left out are what the operators configured (`retry_max_attempts`,
  `machine_restarts`), else 10 and 20.

What the fields of one template say about each other is told by the sentences of the refusal.
"""


def page() -> str:
    return "\n".join([BEGINNING, *_sections(), END])


def _sections() -> Iterator[str]:
    """One table per part: the fields that stand beside each other in a document, in the order of the parts."""
    found = classes()
    parts = {part: list(fields) for part, fields in groupby(sorted(found, key=_part), key=_part)}
    first = {part: next(n for n, one in enumerate(found) if _part(one) == part) for part in parts}
    for part in sorted(parts, key=first.__getitem__):
        if part:
            yield _table(part, parts[part])


def _part(one: Standing) -> str:
    """`spec` stands for itself: paths are written below it."""
    if one.path in ("metadata", "spec"):
        return ""
    return one.path.rpartition(".")[0] or "spec"


def _table(part: str, fields: list[Standing]) -> str:
    lines = [
        f"## `{part}`",
        "",
        "| field | class | type | default | limits | what it does |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {' | '.join(_cell(cell) for cell in (f'`{one.name}`', _class(one), _type(one), one.default, one.limit))} "
        f"| {_cell(_does(one))} |"
        for one in fields
    ]
    return "\n".join([*lines, ""])


def _class(one: Standing) -> str:
    return f"{one.cls}; not yet: {', '.join(one.later)}" if one.later else one.cls


def _type(one: Standing) -> str:
    return f"{one.type}, {one.unit}" if one.unit else one.type


def _does(one: Standing) -> str:
    return f"{one.description} Instead: {one.instead}." if one.instead else one.description


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} is written\n")
