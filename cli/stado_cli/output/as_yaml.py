"""A value as YAML that `stado job submit -f` reads back to the same value.

A text that some reader might take for a number, a truth or a time is quoted: everything but plain words is. Texts of
several lines stand as they are, so that a script in a document can be read.
"""

from __future__ import annotations

import re
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def dumps(shown: Any) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            style = None
        elif "\n" in value and _is_block(value):
            style = "|"
        else:
            style = '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    made: str = yaml.dump(shown, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1 << 30)
    return made


def _is_block(value: str) -> bool:
    """Whether a block keeps it exactly: printable lines without blanks at their ends, the first one not indented."""
    lines = value.split("\n")
    return (
        bool(lines[0])
        and not lines[0].startswith(" ")
        and all(not line or (line.isprintable() and not line.endswith(" ")) for line in lines)
    )
