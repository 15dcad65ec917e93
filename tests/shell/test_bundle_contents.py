"""What of a folder is shipped: git's word, `.stadoignore`, everything; what cannot be is refused by its path."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stado_like.bundle.contents import Kind, contents
from stado_like.errors import Refused


def names(place: Path) -> list[str]:
    return [item.name for item in contents(str(place)).items]


def write(place: Path, *paths: str) -> None:
    for path in paths:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(path)


def git(place: Path, *words: str) -> None:
    settings = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *settings, *words], cwd=place, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    write(place, "tracked", "src/tracked", "src/gone", "build/out", "notes/untracked", "secret.env")
    (place / ".gitignore").write_text("build/\n*.env\n")
    git(place, "init", "-q")
    git(place, "add", ".gitignore", "tracked", "src")
    git(place, "commit", "-qm", "x")
    return place


def test_tracked_and_not_ignored(repository: Path) -> None:
    (repository / "src/gone").unlink()  # and still tracked
    assert names(repository) == [".gitignore", "notes/untracked", "src/tracked", "tracked"]
    assert names(repository / "src") == ["tracked"]


def test_stadoignore_rules_on_top_of_git(repository: Path) -> None:
    (repository / ".stadoignore").write_text("src/\n!build/\n.stadoignore\n")
    assert names(repository) == [".gitignore", "notes/untracked", "tracked"]


def test_the_callers_git_variables_name_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert "src/tracked" in names(repository)


def test_submodules_and_repositories_inside_are_entered(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    write(library, "lib.py", "ignored.log")
    (library / ".gitignore").write_text("*.log\n")
    git(library, "init", "-q")
    git(library, "add", "lib.py", ".gitignore")
    git(library, "commit", "-qm", "x")
    git(repository, "submodule", "--quiet", "add", str(library), "vendor/lib")
    write(repository / "vendor/lib", "new.py", "new.log")
    shutil.copytree(library, repository / "copy")
    assert [name for name in names(repository) if "/" in name] == [
        "copy/.gitignore", "copy/lib.py", "notes/untracked", "src/gone", "src/tracked",
        "vendor/lib/.gitignore", "vendor/lib/lib.py", "vendor/lib/new.py",
    ]  # fmt: skip
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "-q", str(repository), str(fresh))
    git(repository, "commit", "-qm", "with a submodule")
    git(fresh, "pull", "-q")
    found = contents(str(fresh))
    assert not [item for item in found.items if item.name.startswith("vendor")]
    assert found.notes == ("vendor/lib is a submodule that is not checked out: nothing of it is shipped",)


def test_a_folder_that_the_repository_around_it_ignores(repository: Path) -> None:
    found = contents(str(repository / "build"))
    assert [item.name for item in found.items] == ["out"]
    assert len(found.notes) == 1 and "is ignored by the git repository around it" in found.notes[0]


def test_a_file_in_conflict_is_shipped_once_and_what_is_below_a_link_is_not(repository: Path) -> None:
    git(repository, "checkout", "-qb", "other")
    (repository / "tracked").write_text("other")
    git(repository, "commit", "-qam", "other")
    git(repository, "checkout", "-q", "-")
    (repository / "tracked").write_text("ours")
    git(repository, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, "merge", "-q", "other")
    listed = subprocess.run(["git", "ls-files"], cwd=repository, capture_output=True, text=True).stdout.splitlines()
    assert listed.count("tracked") == 3
    shutil.move(repository / "src", repository / "moved")
    (repository / "src").symlink_to("moved")
    assert [name for name in names(repository) if name != ".gitignore"] == [
        "moved/gone", "moved/tracked", "notes/untracked", "src", "tracked",
    ]  # fmt: skip


def test_git_that_cannot_be_asked_is_not_git_that_ignores_nothing(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`.gitignore` often names what must not leave the machine."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(Refused, match="git could not say what it ignores: git is not installed here"):
        names(repository)
    (repository / ".stadoignore").write_text("*.env\n")
    found = contents(str(repository))
    assert "build/out" in {item.name for item in found.items}
    assert "secret.env" not in {item.name for item in found.items}
    assert len(found.notes) == 1 and found.notes[0].endswith(".stadoignore alone rules")


def test_a_broken_repository_is_said_in_gits_words(repository: Path) -> None:
    (repository / ".git/index").write_bytes(b"garbage")
    with pytest.raises(Refused, match="index"):
        names(repository)


def test_without_git_everything_but_dot_git(tmp_path: Path) -> None:
    write(tmp_path, "a", "b/c", ".hidden", ".git/objects/x", "b/.git")
    (tmp_path / "empty/inside").mkdir(parents=True)
    (tmp_path / "to-c").symlink_to("b/c")
    (tmp_path / "nowhere").symlink_to("not/there")
    found = {item.name: item for item in contents(str(tmp_path)).items}
    assert list(found) == [".hidden", "a", "b/c", "empty/inside", "nowhere", "to-c"]
    assert (found["empty/inside"].kind, found["to-c"].kind, found["to-c"].target) == (Kind.FOLDER, Kind.LINK, "b/c")
    (tmp_path / ".stadoignore").write_text("b/\nempty\n.*\n")
    assert names(tmp_path) == ["a", "nowhere", "to-c"]


def test_names_that_are_not_text_and_times_before_1980(tmp_path: Path) -> None:
    """A zip of such a folder failed: its times begin in 1980."""
    odd = os.fsencode(tmp_path) + b"/caf\xe9 \n'\""
    with open(odd, "w"):
        pass
    os.utime(odd, (0, -1))
    assert [os.fsencode(name) for name in names(tmp_path)] == [b"caf\xe9 \n'\""]


def fifo(path: Path) -> None:
    os.mkfifo(path)


def sock(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [fifo, sock])
def test_what_is_no_file_is_refused_by_its_path(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "odd")
    with pytest.raises(Refused, match=r"/odd' is a (fifo|socket), and only files, folders and links can be shipped"):
        names(tmp_path)
    (tmp_path / ".stadoignore").write_text("odd\n")
    assert names(tmp_path) == [".stadoignore"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "down/../../outside", "to-above/outside", "."])
def test_a_link_that_leaves_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "folder"
    (folder / "down").mkdir(parents=True)
    (folder / "down/file").write_text("")
    (folder / "link").symlink_to(target)
    (folder / "to-above").symlink_to("..")
    if target == ".":
        (folder / "to-above").unlink()
        assert names(folder) == ["down/file", "link"]
        return
    with pytest.raises(Refused, match="is a link that leaves the folder"):
        names(folder)


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_refused_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(Refused, match="/closed' cannot be read: Permission denied"):
        names(tmp_path)
