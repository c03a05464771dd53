#!/bin/sh
# Runs the tests marked `extras` with one framework: `tools/test_extras.sh NAME FOLDER_OF_THE_WHEEL`.
# The framework's packages are in requirements/extras/NAME.in. The newest versions are installed, and printed.
set -eu

name=$1
wheels=$2
venv=.venv-extras/$name

[ -x "$venv/bin/python" ] || sh tools/venv.sh "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade \
    -r "requirements/extras/$name.in" -r requirements/extras/tests.txt
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheels"/*.whl
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/*.whl
"$venv/bin/python" -c 'import sys; from importlib.metadata import version
for name in sys.argv[1:]: print(name, version(name), file=sys.stderr)' \
    $(sed -n 's/^\([A-Za-z0-9][A-Za-z0-9._-]*\).*/\1/p' "requirements/extras/$name.in")
grep -rl --include='test_*.py' 'mark\.extras' tests | sort |
    xargs "$venv/bin/python" -m pytest --quiet -m extras -p no:cacheprovider
