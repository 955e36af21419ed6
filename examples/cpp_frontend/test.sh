#!/bin/sh
# Builds training.cpp against the torch under test and runs it; for torchbisect --test "sh test.sh".
# A build that fails says nothing about training: 125 is "skip".
set -u
source=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
build=${TORCHBISECT_SCRATCH:-$(mktemp -d)}/build
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="${TORCHBISECT_PYTHON:-python3}" >"$build.log" 2>&1 &&
    cmake --build "$build" >>"$build.log" 2>&1 || {
    tail -n 5 "$build.log" >&2
    exit 125
}
"$build/training"
