# Sourced by the scripts beside it: `make_venv [DIR] [EXTRA]` leaves a virtual environment in which this checkout is installed.
#
# Does nothing when pyproject.toml, constraints.txt, the Python and the place of the checkout are those of the last
# time (a stamp in the environment says so). PYTHON=… chooses the interpreter.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

find_python() {
    local name
    for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$name" ] || continue
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return 0
        fi
    done
    echo "No Python of version 3.11 or newer was found. Install one (Debian: apt install python3), or name it: PYTHON=/path/to/python3 $0" >&2
    return 2
}

new_venv() { # PYTHON DIR
    if ! "$1" -c 'import venv, ensurepip' 2>/dev/null; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            echo "Python's venv module is missing: installing the Debian package python3-venv." >&2
            { apt-get install -y -q python3-venv || { apt-get update -q && apt-get install -y -q python3-venv; }; } >&2
        fi
        if ! "$1" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "Python's venv module is missing. On Debian and Ubuntu: apt install python3-venv. Then run this again." >&2
            return 2
        fi
    fi
    "$1" -m venv "$2"
}

stamp_of() { # VENV_PYTHON EXTRA
    "$1" - "$root" "$2" <<'PY'
import hashlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
parts = [sys.version, sys.argv[1], sys.argv[2], *((root / name).read_text() for name in ("pyproject.toml", "constraints.txt"))]
print(hashlib.sha256("\n".join(parts).encode()).hexdigest())
PY
}

make_venv() { # [DIR] [EXTRA]
    local dir=${1:-$root/.venv} extra=${2:-} python what stamp
    if ! "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || return
        echo "making $dir" >&2
        rm -rf "$dir"
        new_venv "$python" "$dir" || return
    fi
    # An environment with the test tools serves whoever needs none.
    for what in "$extra" test; do
        stamp=$(stamp_of "$dir/bin/python" "$what")
        [ "$(cat "$dir/.installed-${what:-run}" 2>/dev/null)" = "$stamp" ] && return 0
    done
    stamp=$(stamp_of "$dir/bin/python" "$extra")
    echo "installing into $dir" >&2
    "$dir/bin/python" -m pip install --disable-pip-version-check -qq -c "$root/constraints.txt" -e "$root${extra:+[$extra]}" || return
    echo "$stamp" >"$dir/.installed-${extra:-run}"
}
