#!/bin/sh
# Pins the requirements with hashes, each file on top of the ones before it: `make lock`.
# Arguments go to uv (`--upgrade`, `--upgrade-package NAME`). No address of a package index is written.
set -eu

cd "$(dirname "$0")/.."
uv=${UV:-uv}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

pin() {
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-build \
        --custom-compile-command "make lock" "$@"
}

pin pyproject.toml -o requirements/runtime.txt "$@"
pin requirements/build.in -o requirements/build.txt "$@"
pin requirements/test.in -o requirements/test.txt "$@"
pin requirements/dev.in -o requirements/dev.txt "$@"
pin --no-deps requirements/axe.in -o requirements/axe.txt "$@"

# The lowest versions that pyproject.toml admits, for `make test-lowest`; the test tools stay new, but for onnx:
# 1.19 cannot be imported with the ml-dtypes that numpy 2.0 admits.
pin pyproject.toml --all-extras --resolution lowest-direct -o "$scratch/lowest.txt" "$@"
echo "onnx<1.19" > "$scratch/old.in"
pin "$scratch/lowest.txt" "$scratch/old.in" requirements/build.in requirements/tools.in --no-annotate \
    -o requirements/lowest.txt "$@"
