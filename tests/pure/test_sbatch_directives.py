"""Which options a batch script gives: read line for line as sbatch reads them.

Every row of `READ` and `IGNORED` was also tried on Slurm 22.05, which took the same from it.
"""

from __future__ import annotations

import pytest

from stado_like.errors import Exit, UsageError
from stado_like.sbatch.directives import Directive, read
from stado_like.sbatch.options import OPTIONS, Takes

HEAD = "#!/bin/bash\n"


def options(lines: str) -> list[tuple[str, str]]:
    return [(one.name, one.value) for one in read(HEAD + lines + "\necho\n").directives]


READ = [
    ("#SBATCH -t 10", [("time", "10")]),
    ("#SBATCH -t10", [("time", "10")]),
    ("#SBATCH --time=10", [("time", "10")]),
    ("#SBATCH --time 10", [("time", "10")]),
    ("#SBATCH--time=10", [("time", "10")]),
    ("#SBATCH\t-t\t10", [("time", "10")]),
    ("#SBATCH -J a --time=10 -c 1", [("job-name", "a"), ("time", "10"), ("cpus-per-task", "1")]),
    ("#SBATCH -Ht 5", [("hold", ""), ("time", "5")]),
    ("#SBATCH -N1 -n4", [("nodes", "1"), ("ntasks", "4")]),
    ("#SBATCH -t 4:00 # a comment", [("time", "4:00")]),
    ("#SBATCH --comment=a#b -t 5", [("comment", "a")]),
    ('#SBATCH --comment="a # b" -t 5', [("comment", "a # b"), ("time", "5")]),
    ("#SBATCH -J 'my job'", [("job-name", "my job")]),
    (r"#SBATCH -J my\ job", [("job-name", "my job")]),
    ('#SBATCH --output="x y".txt', [("output", "x y.txt")]),
    ("#SBATCH --arr=1-3", [("array", "1-3")]),
    ("#SBATCH --nice", [("nice", "")]),
    ("#SBATCH --nice=5", [("nice", "5")]),
    ("#SBATCH --exclusive --requeue", [("exclusive", ""), ("requeue", "")]),
    ("#SBATCH --qos=", [("qos", "")]),
    ("#SBATCH", []),
    ("# a comment\n\n   \n#SBATCH -t 5", [("time", "5")]),
    ("\t# an indented comment\n#SBATCH -t 5", [("time", "5")]),
    ("##SBATCH -t 7\n# SBATCH -t 6\n#sbatch -t 8", []),
]


@pytest.mark.parametrize(("lines", "expected"), READ, ids=[repr(row[0]) for row in READ])
def test_options_are_read_as_sbatch_reads_them(lines: str, expected: list[tuple[str, str]]) -> None:
    found = read(HEAD + lines + "\necho\n")
    assert [(one.name, one.value) for one in found.directives] == expected
    assert found.notes == ()


IGNORED = [
    ("echo\n#SBATCH -t 5", "line 3: #SBATCH -t 5: it stands after the first command, where sbatch does not read it"),
    ("  #SBATCH -t 5", "line 2: #SBATCH -t 5: it does not begin the line, so sbatch does not read it either"),
    ("#PBS -l nodes=1", "line 2: #PBS -l nodes=1: only #SBATCH lines are read"),
    ("#BSUB -W 8", "line 2: #BSUB -W 8: only #SBATCH lines are read"),
]


@pytest.mark.parametrize(("lines", "note"), IGNORED, ids=[repr(row[0]) for row in IGNORED])
def test_a_line_that_only_looks_like_a_directive_is_noted(lines: str, note: str) -> None:
    found = read(HEAD + lines + "\necho\n")
    assert (found.directives, found.notes) == ((), (note,))


REFUSED = [
    ("#SBATCH extra", "line 2: 'extra' belongs to no option"),
    ("#SBATCH -t 5 extra", "line 2: 'extra' belongs to no option"),
    ("#SBATCH --time = 5", "line 2: '5' belongs to no option"),
    ("#SBATCH --ntasks", "line 2: --ntasks has no value"),
    ("#SBATCH -t ''", "line 2: --time has no value"),
    ("#SBATCH --n=2", "line 2: --n may mean "),
    ("#SBATCH --requeue=yes", "line 2: --requeue takes no value"),
    ("#SBATCH --tiem=5", "line 2: --tiem is not an option of sbatch"),
    ("#SBATCH -y 5", "line 2: -y is not an option of sbatch"),
    ("#SBATCH -J 'open", "line 2: the quote ' is not closed"),
    ("#SBATCH -t 5\n#SBATCH hetjob\n#SBATCH -t 6", "line 3: hetjob: "),
    ("#SBATCH -t 5\r", "line 2: ends with CR LF"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED, ids=[repr(row[0]) for row in REFUSED])
def test_what_cannot_be_read_is_refused_by_its_line(lines: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(HEAD + lines + "\necho\n")
    assert refused.value.message.startswith(message)
    assert refused.value.next_step
    assert refused.value.exit_code == Exit.REFUSED


def test_a_typing_mistake_is_told_the_option_that_was_meant() -> None:
    with pytest.raises(UsageError) as refused:
        read(HEAD + "#SBATCH --cpu-per-task=4\n")
    assert refused.value.next_step == "Did you mean --cpus-per-task?"


def test_an_option_of_a_cluster_itself_is_handed_on() -> None:
    assert read(HEAD + "#SBATCH --container-image=python:3.12 -t 5\n").directives == (
        Directive(2, "container-image", "python:3.12", known=False),
        Directive(2, "time", "5"),
    )


def test_a_script_without_an_interpreter_is_refused() -> None:
    with pytest.raises(UsageError, match="names no interpreter"):
        read("#SBATCH -t 5\necho\n")


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda one: one.name)
def test_every_option_is_read_in_all_its_forms(option: object) -> None:
    assert isinstance(option, type(OPTIONS["time"]))
    if option.takes is Takes.NOTHING:
        assert options(f"#SBATCH --{option.name} -t 5") == [(option.name, ""), ("time", "5")]
    elif option.takes is Takes.VALUE:
        assert options(f"#SBATCH --{option.name} v") == options(f"#SBATCH --{option.name}=v") == [(option.name, "v")]
    else:
        assert options(f"#SBATCH --{option.name}=v --{option.name}") == [(option.name, "v"), (option.name, "")]
    if option.short and option.takes is Takes.VALUE:
        assert options(f"#SBATCH -{option.short}v") == options(f"#SBATCH -{option.short} v") == [(option.name, "v")]
