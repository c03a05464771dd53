#!/bin/sh
# Makes a virtual environment: `tools/venv.sh FOLDER`. Uses uv where it is installed, else python3 -m venv.
# $PYTHON names the interpreter; without it the first Python >= 3.11 found is taken.
set -eu

venv=$1

recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    if ! recent "$PYTHON"; then
        echo "merilo needs Python 3.11 or newer, but PYTHON=$PYTHON is older or does not start; name another." >&2
        exit 1
    fi
    found=$PYTHON
else
    found=
    for candidate in python3 python python3.14 python3.13 python3.12 python3.11; do
        if recent "$candidate"; then
            found=$candidate
            break
        fi
    done
fi
if [ -z "$found" ]; then
    echo "merilo needs Python 3.11 or newer, but none of python3, python3.11 … python3.14 is; install one or" \
        "name it: make PYTHON=/path/to/python." >&2
    exit 1
fi

rm -rf "$venv"
if command -v uv >/dev/null 2>&1; then
    uv venv --quiet --seed --no-python-downloads --python "$("$found" -c 'import sys; print(sys.executable)')" "$venv"
elif ! "$found" -m venv "$venv"; then
    rm -rf "$venv"
    echo "$found cannot make a virtual environment; install its venv module (Debian: apt install python3-venv)" \
        "or uv." >&2
    exit 1
fi
"$venv/bin/python" --version >&2
