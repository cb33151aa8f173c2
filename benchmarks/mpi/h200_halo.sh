#!/bin/sh
# Direct halos of 512^3 doubles with one message for a neighbour, on one H200 that one, two and eight processes share: h200_halo.sh OUT. About 60 s.
# Every part has a limit of its own, and its rows are written as they come.
set -u
out=$1 python=${PYTHON:-python3}
mkdir -p "$out"
part() { # NAME LIMIT COMMAND...
    name=$1 limit=$2
    shift 2
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: code $?, $(($(date +%s) - start)) s" | tee -a "$out/parts.txt"
}

scaling="$python -m benchmarks.mpi.scaling --gpus 1 --out $out/scaling --methods arrays slots ${DRY:-}"
part scaling_8 30 $scaling --processes 8
part scaling_2 20 $scaling --processes 2 --share
part scaling_1 25 $scaling --processes 1
cat "$out/parts.txt"
