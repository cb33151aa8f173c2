#!/bin/bash
# What one H200 measures of our kernels in a few minutes, part by part; each part writes its rows as they come.
#
#     bash benchmarks/kernelbench/draw_h200.sh KB OUT PART SECONDS [ARCHIVE]
#
# KB has level1, level2, level3, and footprints.json (eager peaks, as `run --footprints` makes it). Parts:
#
#     verdicts   a draw through the verifier, of the tasks of LEVELS (1,2,3) whose eager peak is LARGEST GB at most (4); SEED, COUNT and JOBS are
#                the draw's, on GPUS of them (1), JOBS on each, a candidate timed for TIMING seconds (2; 1 was too short for 7 of 8 candidates when
#                nine jobs took turns; with the ARCHIVE of an earlier run what it finished is left out)
#     products   TASKS (1:1,3:3: products by INT8 slices) through the verifier, anew REPEATS times (3) side by side, each with its own secret
#     first      first programs, no verdicts; MORE: further tasks
#     level3     first programs of level 3, no verdicts, the smallest first; TASKS: which (all whose eager peak is LARGEST GB at most)
#     host       three small kernels: what they take of the host
set -u
kb=$(realpath "$1") out=$2 part=$3 seconds=$4 archive=${5:-}
mkdir -p "$out"
minutes=$(python3 -c "print($seconds / 60)")
held=benchmarks/kernels/held_out
judged=(--prewarm skip --baselines eager,compile,cuda_graph --budget "3000s,2 proposals,until faster" --budget-of all --timing-seconds "${TIMING:-2}"
  --minutes "$minutes" --grace 9 --trace)
case $part in
verdicts)
  python3 -m benchmarks.kernelbench.run --kernelbench "$kb" --levels "${LEVELS:-1,2,3}" --footprints "$kb/footprints.json" \
    --largest "${LARGEST:-4}" --draw "${SEED:-47},${COUNT:-48}" --gpus "${GPUS:-1}" --jobs-per-gpu "${JOBS:-6}" "${judged[@]}" --resume --out "$out" \
    ${archive:+--archive "$archive"}
  ;;
products)
  for number in $(seq "${REPEATS:-3}"); do
    python3 -m benchmarks.kernelbench.run --kernelbench "$kb" --levels 1,2,3 --footprints "$kb/footprints.json" --only "${TASKS:-1:1,3:3}" \
      --jobs-per-gpu 2 "${judged[@]}" --out "$out/$number" &
  done
  wait
  ;;
level3)
  some=$(python3 -c "
import json, sys
peaks = {name: peak for name, peak in json.load(open(sys.argv[1])).items() if name.startswith('3:') and peak <= 1e9 * float(sys.argv[2])}
print(','.join(sorted(peaks, key=peaks.get)))" "$kb/footprints.json" "${LARGEST:-4}")
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile --wide 2 --jobs "${JOBS:-9}" --seconds "$seconds" --kernels \
    --tasks "${TASKS:-$some}"
  ;;
first)
  tasks=benchmarks/kernels/tasks
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile --wide 8 --jobs 9 --seconds "$seconds" --kernels \
    --tasks "2:17,2:46,2:35,2:5,$tasks/smoothness_loss.py,$held/message_mean.py,$held/upsample_and_join.py,3:31,3:43,2:52,2:16,2:100,2:93,2:26,1:50,2:19,$tasks/patch_merging.py,$tasks/gated_update.py,3:21${MORE:+,$MORE}"
  ;;
host)
  python3 -m benchmarks.kernelbench.first --kernelbench "$kb" --out "$out" --baselines compile,cuda_graph --jobs 1 --seconds "$seconds" --kernels \
    --tasks benchmarks/kernels/chains/three_kernels.py
  ;;
*)
  echo "expected verdicts, products, first, level3 or host, saw $part" >&2
  exit 2
  ;;
esac
