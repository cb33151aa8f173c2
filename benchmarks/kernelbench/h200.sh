#!/bin/bash
# What one H200 measures of our kernels in a few minutes, part by part; each part writes its rows as they come.
#
#     bash benchmarks/kernelbench/h200.sh KB OUT PART SECONDS [ARCHIVE]
#
# KB has level1, level2 and level3. Parts: verdicts (through the verifier; with the ARCHIVE of an earlier run what it finished is left out),
# first (first programs, no verdicts), scans (the same of running sums and products), host (three
# small kernels: what they take of the host).
set -u
kb=$(realpath "$1") out=$2 part=$3 seconds=$4 archive=${5:-}
mkdir -p "$out"
folder=$(mktemp -d)
for level in 1 2 3; do ln -s "$kb/level$level" "$folder/level$level"; done
cp -r benchmarks/kernels/tasks "$folder/level4"
cp -r benchmarks/kernels/held_out "$folder/level5"
minutes=$(python3 -c "print($seconds / 60)")

# The draw of seed 33 from the tasks of levels 1 and 2 whose eager peak is below 1.3 GB, but for large convolutions in float64 (a judge takes
# minutes for one) and the ten tasks that have a verdict with these kernels.
drawn=2:75,2:85,2:69,2:68,2:81,2:63,2:18,2:97,2:88,2:9,2:41,2:14,1:13,2:51,2:33,1:14,2:45,2:76,2:30,2:84,2:99,1:88,2:28,1:1,1:95,2:53,1:18
drawn=$drawn,1:6,2:71,2:29,2:98,2:22,1:85,2:39,2:95,2:40,1:15,1:12,2:64,2:73,2:86,1:40

held=benchmarks/kernels/held_out
case $part in
verdicts)
  python3 -m benchmarks.kernelbench.run --kernelbench "$folder" --levels 1,2,3,4,5 --only "$drawn" --first "$drawn" --jobs-per-gpu "${JOBS:-7}" \
    --prewarm skip --baselines eager,compile --budget "3000s,2 proposals,until faster" --budget-of all --timing-seconds 1 --minutes "$minutes" \
    --grace 9 --trace --resume --out "$out" ${archive:+--archive "$archive"}
  ;;
first)
  python3 -m benchmarks.kernelbench.first --kernelbench "$folder" --out "$out" --baselines compile --wide 8 --jobs 8 --seconds "$seconds" --kernels \
    --tasks "2:31,2:1,1:63,2:17,2:46,2:5,2:2,2:48,2:52,2:100,2:93,2:91,$held/message_mean.py,$held/upsample_and_join.py,1:56,2:35,2:16,2:4,2:3,2:26,3:43,3:31,3:21,1:50,2:19"
  ;;
scans)
  python3 -m benchmarks.kernelbench.first --kernelbench "$folder" --out "$out" --baselines compile --wide 4 --jobs 3 --seconds "$seconds" --kernels \
    --tasks 1:91,1:89,1:93,1:92,1:90
  ;;
host)
  python3 -m benchmarks.kernelbench.first --kernelbench "$folder" --out "$out" --baselines compile,cuda_graph --jobs 1 --seconds "$seconds" --kernels \
    --tasks benchmarks/kernels/chains/three_kernels.py
  ;;
*)
  echo "expected verdicts, first, scans or host, saw $part" >&2
  exit 2
  ;;
esac
