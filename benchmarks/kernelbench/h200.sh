#!/bin/bash
# What one H200 measures of our kernels in a few minutes, part by part; each part writes its rows as they come.
#
#     bash benchmarks/kernelbench/h200.sh KB OUT PART SECONDS [ARCHIVE]
#
# KB has level1, level2, level3, and footprints.json (eager peaks, as `run --footprints` makes it). Parts:
#
#     verdicts   a draw through the verifier, of the tasks whose eager peak is 6 GB at most; SEED, COUNT and JOBS are the draw's
#                (with the ARCHIVE of an earlier run what it finished is left out)
#     first      first programs, no verdicts
#     scans      the same of running sums and products
#     host       three small kernels: what they take of the host
set -u
kb=$(realpath "$1") out=$2 part=$3 seconds=$4 archive=${5:-}
mkdir -p "$out"
minutes=$(python3 -c "print($seconds / 60)")
held=benchmarks/kernels/held_out
case $part in
verdicts)
  python3 -m benchmarks.kernelbench.run --kernelbench "$kb" --levels 1,2,3 --footprints "$kb/footprints.json" --largest 6 \
    --draw "${SEED:-47},${COUNT:-48}" --jobs-per-gpu "${JOBS:-9}" --prewarm skip --baselines eager,compile,cuda_graph \
    --budget "3000s,2 proposals,until faster" --budget-of all --timing-seconds 1 --minutes "$minutes" --grace 9 --trace --resume --out "$out" \
    ${archive:+--archive "$archive"}
  ;;
first)
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile --wide 8 --jobs 8 --seconds "$seconds" --kernels \
    --tasks "2:31,2:1,1:63,2:17,2:46,2:5,2:2,2:48,2:52,2:100,2:93,2:91,$held/message_mean.py,$held/upsample_and_join.py,1:56,2:35,2:16,2:4,2:3,2:26,3:43,3:31,3:21,1:50,2:19"
  ;;
scans)
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile --wide 4 --jobs 3 --seconds "$seconds" --kernels \
    --tasks 1:91,1:89,1:93,1:92,1:90
  ;;
host)
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile,cuda_graph --jobs 1 --seconds "$seconds" --kernels \
    --tasks benchmarks/kernels/chains/three_kernels.py
  ;;
*)
  echo "expected verdicts, first, scans or host, saw $part" >&2
  exit 2
  ;;
esac
