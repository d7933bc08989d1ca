#!/usr/bin/env bash
# Build the demo the way Binder does, in a fresh copy and a fresh virtual environment: the same
# files in the same order (repo2docker's Python buildpack: requirements.txt, then postBuild), then
# run the tour in it. System packages (apt.txt) are left to the machine.
#
# usage: build_as_binder.sh CHECKOUT FOLDER
set -euo pipefail

checkout=$(cd "$1" && pwd)
folder=$2
mkdir -p "$folder"
git -C "$checkout" archive HEAD | tar -x -C "$folder"
python3 -m venv "$folder/.binder-venv"
export PATH="$folder/.binder-venv/bin:$PATH"
cd "$folder"
python -m pip install --quiet --disable-pip-version-check -r binder/requirements.txt
./binder/postBuild
jupyter nbconvert --log-level=WARN --to notebook --execute --ExecutePreprocessor.timeout=600 \
    --output-dir "$folder/out" notebooks/01_tour.ipynb
echo "the tour ran in a build as Binder makes it: $folder/out/01_tour.ipynb"
