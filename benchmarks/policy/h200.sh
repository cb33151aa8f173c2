#!/bin/bash
# What the policy is measured by on a GPU, part by part: h200.sh PART FOLDER OUT [SECONDS]. Parts may not run beside other GPU work.
# FOLDER is what `python -m benchmarks.policy.live.folder` writes: tasks/, third/, fourth/, fifth/, and lib/ with the packages of these.
#   probed   the policy, it without its model, random, greedy, evolve, 16 evaluations each; evolve to 128; by the probe                  115 s
#   judged   the best program of each search of policy_chosen's rows through the evaluator, then the policy's search by it alone           80 s
#   verified the policy, it without its model, random and greedy, 16 evaluations each, by the probe, and the verifier's word on the best of each and
#            on the fastest programs of evolve's longer runs in the rows of policy_chosen and policy_live; KernelBench and third/, or the
#            folders in FILES. What is done in the rows of DONE is left out (both variables of the environment)                           320 s
#   outside  the policy and random, 16 evaluations each, and evolve to 256, on the blocks of fourth/; by the probe                      140 s
#   blocks   the same blocks, or those of FILES: the policy, random, greedy and evolve, 16 evaluations each, evolve's longer run in what is left of half
#            of the time, to 256 at most, then the verifier's word on the best of each                                                 170 s
part=$1 folder=$(realpath "$2") out=$3 seconds=$4
chosen=benchmarks/results/policy_chosen/probed.jsonl.gz live=benchmarks/results/policy_live/probed.jsonl.gz
outside=benchmarks/results/policy_live/outside.jsonl.gz
export PYTHONPATH=$PWD:$folder/lib:$PYTHONPATH
mkdir -p "$out"
case $part in
probed)
    timeout $((${seconds:-130} + 10)) python3 -m benchmarks.policy.live.probed --out "$out/probed" --files "$folder/tasks" --seeds 1 --whole 128 \
        --searches policy,unasked,random,greedy,evolve --jobs 14 --limit "${seconds:-130}" ;;
judged)
    timeout $((${seconds:-80} + 10)) python3 -m benchmarks.policy.live.judged --out "$out/judged" --files "$folder/tasks" --found "$chosen" \
        --live --jobs 12 --limit "${seconds:-80}" ;;
verified)
    timeout $((${seconds:-320} + 8)) python3 -m benchmarks.policy.live.verified --out "$out/verified" --files "${FILES:-$folder/tasks,$folder/third}" \
        --found "$chosen,$live,$outside" --searches policy,unasked,random,greedy --done "$DONE" \
        --jobs $(($(nproc) < 14 ? $(nproc) + 2 : 16)) --limit "${seconds:-320}" ;;
outside)
    timeout $((${seconds:-140} + 5)) python3 -m benchmarks.policy.live.probed --out "$out/outside" --files "$folder/${BLOCKS:-fourth}" --seeds 1 --whole 256 \
        --apart --searches policy,random --jobs 24 --limit "${seconds:-140}" ;;
blocks)
    timeout $((${seconds:-170} + 8)) python3 -m benchmarks.policy.live.verified --out "$out/blocks" --files "${FILES:-$folder/fourth}" \
        --longer $((${seconds:-170} / 2)) --searches policy,random,greedy,evolve --jobs $(($(nproc) < 12 ? $(nproc) : 12)) --limit "${seconds:-170}" ;;
*) echo "expected probed, judged, verified, outside or blocks, saw $part" >&2 && exit 2 ;;
esac
