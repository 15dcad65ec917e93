"""What a task tells when it ends: its progress, its outputs and its answer, read from its folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from stado_like.job import codec
from stado_like.job.pairs import MOST_KEYS
from stado_like.job.terms import terms_of
from stado_worker.secrets.masking import NO_MASKS, Masks
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.outputs import ANSWER_BYTES, Said, keep_working_directory, said


def told(folder: Path, *, answer_path: str = "", masks: Masks | None = NO_MASKS) -> Said:
    document = {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}
    return said(AttemptDir(folder), replace(terms_of(document), answer_path=answer_path), masks)


def test_nothing_written_is_nothing_told(tmp_path: Path) -> None:
    assert told(tmp_path) == Said()


def test_outputs_are_lines_and_progress_is_words(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("best=model 3\naccuracy=0.93\nbest=model 4\n")
    (tmp_path / "progress").write_text("step=9 total=10\nstep=10")
    found = told(tmp_path)
    assert found.outputs == {"best": "model 4", "accuracy": "0.93"}
    assert found.progress == {"step": 10, "total": 10}
    assert found.notes == ()


def test_too_many_and_too_much_are_cut_and_noted(tmp_path: Path) -> None:
    lines = [f"k{at:02}=v" for at in range(70)] + ["no pair", "k00=" + "x" * 5000]
    (tmp_path / "outputs").write_text("\n".join(lines))
    found = told(tmp_path)
    assert len(found.outputs) == MOST_KEYS
    assert found.outputs["k00"] == "v"
    assert found.notes == (
        "Outputs are at most 64 pairs and 4096 bytes; left out: k00, k64, k65, k66, k67 and 2 more",
        "1 lines of STADO_OUTPUTS are no key=value",
    )


@pytest.mark.parametrize("kind", ["folder", "pipe", "binary", "huge"])
def test_whatever_lies_there_is_at_most_a_note(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "outputs"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(b"\x00\xff\n" * (100 if kind == "binary" else 1_000_000) + b"late=1\n")
    found = told(tmp_path)
    assert len(found.notes) >= 1
    assert codec.encode({"notes": found.notes, "outputs": found.outputs})


@pytest.mark.parametrize("absolute", [False, True])
def test_answer_is_the_text_of_a_file(tmp_path: Path, absolute: bool) -> None:
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (cwd / "answer.txt").write_text("forty\ntwo\n")
    keep_working_directory(AttemptDir(tmp_path), str(cwd))
    found = told(tmp_path, answer_path=str(cwd / "answer.txt") if absolute else "answer.txt")
    assert (found.answer, found.notes) == ("forty\ntwo\n", ())


def test_long_answer_is_cut_between_letters_and_a_missing_one_is_noted(tmp_path: Path) -> None:
    keep_working_directory(AttemptDir(tmp_path), str(tmp_path))
    (tmp_path / "long").write_text("x" + "é" * ANSWER_BYTES)
    found = told(tmp_path, answer_path="long")
    assert found.answer is not None
    assert len(found.answer.encode()) == ANSWER_BYTES - 1
    assert "first 8192 bytes" in found.notes[0]
    assert told(tmp_path, answer_path="gone").notes == (f"There is no answer: {tmp_path}/gone does not exist",)


def test_credentials_become_stars_and_unknown_ones_keep_everything_back(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("token=hunter22\nplain=1\n")
    (tmp_path / "progress").write_text("url=http://hunter22@x step=3\n")
    found = told(tmp_path, masks=Masks.of([b"hunter22"]))
    assert found.outputs == {"token": "********", "plain": "1"}
    assert found.progress == {"url": "http://********@x", "step": 3}
    assert told(tmp_path, masks=None) == Said()
