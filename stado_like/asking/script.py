"""A script as a command: its text travels in the job's document, so what runs is what was submitted.

Named by its path instead, a script that is edited while the job waits runs as something nobody submitted, and on
another machine it is not there at all. So its text becomes an argument, on every kind of store:

    a shell's script     `bash -c TEXT NAME ARGS…`, with the words of its #! line; `$0` is the name as it was given
    anything else        `sh -c LOADER NAME TEXT ARGS…`: the loader writes the text into the attempt's own folder and
                         starts the interpreter of the #! line on that file

Tried and dropped: one loader for both (a shell's script then needs no file, and its text stays readable in `job
show`), and an interpreter's own `-c` (Python has no `__file__` there).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from stado_like.errors import Refused
from stado_like.job.spec import limits, units

SUFFIXES: Final = (".sh", ".bash", ".sbatch", ".slurm", ".ksh", ".zsh")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "mksh", "zsh", "ash"})
_OTHER_LANGUAGES: Final = {
    ".py": "python",
    ".pl": "perl",
    ".rb": "ruby",
    ".js": "node",
    ".r": "Rscript",
    ".jl": "julia",
    ".lua": "lua",
}
_SPECIFICATIONS: Final = (".yaml", ".yml", ".json")
_DEFAULT: Final = ("bash",)
_MARK: Final = b"\xef\xbb\xbf"
"""What some editors put before a UTF-8 text; before `#!` it hides the interpreter."""
_LOADER: Final = (
    'd="${{STADO_OUTPUTS%/*}}/script"; f="$d/{name}"; mkdir -p "$d" && printf %s "$1" >"$f" || exit 126; shift; '
    'exec {words} "$f" "$@"'
)


def is_text(head: bytes) -> bool:
    """Whether a file that begins so is a text: machine code has a zero byte at once."""
    return b"\0" not in head


def looks_like_a_script(name: str, head: bytes) -> bool:
    return head.removeprefix(_MARK).startswith(b"#!") or name.lower().endswith(SUFFIXES)


def reads_sbatch(text: str) -> bool:
    return any(line.startswith("#SBATCH") for line in text.splitlines())


def text_of(body: bytes, name: str) -> str:
    """The text of a script's bytes. Raises `Refused` for what no shell would run as it was meant."""
    if len(body) > limits.ONE_STRING_MAX_BYTES:
        raise Refused(
            f"the script {name} is larger than {units.size_words(limits.ONE_STRING_MAX_BYTES)}, and no more travels "
            "with a job",
            f"Ship its folder and run it there: `--workdir . -- ./{name.rsplit('/', 1)[-1]}`.",
        )
    try:
        text = body.removeprefix(_MARK).decode()
    except UnicodeDecodeError as bad:
        line = body.count(b"\n", 0, bad.start) + 1
        raise Refused(
            f"the script {name} is not UTF-8: byte {body[bad.start]:#04x} in line {line}",
            "Convert it, for example with `iconv -t UTF-8`, or ship its folder: `--workdir .`.",
        ) from None
    if text.split("\n", 1)[0].endswith("\r"):
        raise Refused(
            f"the script {name} has DOS line ends (CR LF), which no shell takes",
            f"Convert it: `sed -i 's/\\r$//' {shlex.quote(name)}`.",
        )
    if not text.strip():
        raise Refused(f"the script {name} is empty", "Submit a script that does something.")
    return text


def command(text: str, name: str, args: Sequence[str]) -> list[str]:
    """The words that run a script's text. Raises `Refused` when nothing says what runs it."""
    words = interpreter(text, name)
    if _program(words) in _SHELLS:
        while len(words) > 1 and words[-1] in ("-", "--"):  # they end the options, and -c is one
            words.pop()
        return [*words, "-c", text, name, *args]
    base = name.rsplit("/", 1)[-1]
    loader = _LOADER.format(name=_within_quotes(base), words=shlex.join(words))
    return ["sh", "-c", loader, name, text, *args]


def interpreter(text: str, name: str) -> list[str]:
    """The words of the #! line; bash where there is none."""
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        try:
            words = shlex.split(first[2:])
        except ValueError:
            words = first[2:].split()
        if words:
            return words
    suffix = "." + name.lower().rsplit(".", 1)[-1]
    if suffix in _OTHER_LANGUAGES:
        raise Refused(
            f"{name} has no #! line, and bash does not read it",
            f"Say what runs it: `stado job submit -- {_OTHER_LANGUAGES[suffix]} {name}`, or begin it with "
            f"`#!/usr/bin/env {_OTHER_LANGUAGES[suffix]}`.",
        )
    if suffix in _SPECIFICATIONS:
        raise Refused(f"{name} is no script", f"A specification is given with -f: `stado job submit -f {name}`.")
    return list(_DEFAULT)


def _program(words: Sequence[str]) -> str:
    """`bash` of `/usr/bin/env -S bash -eu`: what the interpreter is called."""
    rest = list(words)
    if rest[0].rsplit("/", 1)[-1] == "env":
        rest = [word for word in rest[1:] if not word.startswith("-") and "=" not in word]
    return rest[0].rsplit("/", 1)[-1] if rest else ""


def _within_quotes(text: str) -> str:
    """For use between double quotes of a shell."""
    return "".join("\\" + letter if letter in '\\"$`' else letter for letter in text)
