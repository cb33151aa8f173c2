#!/bin/bash
# What the policy is measured by on a GPU, part by part: h200.sh PART FOLDER OUT [SECONDS]. Parts may not run beside other GPU work.
# FOLDER is what `python -m benchmarks.policy.live.folder` writes: tasks/, outside/, and lib/ with the packages of outside/.
#   probed   the policy, it without its model, random, greedy, evolve, 16 evaluations each; evolve to 128; by the probe                   115 s
#   judged   the best program of each search of policy_chosen's rows through the evaluator, then the policy's search by it alone           80 s
#   verified the policy, it without its model, random and greedy, 16 evaluations each, every best so far by the verifier, and the fastest
#            programs of evolve's longer runs in the rows of policy_chosen and policy_live                                              125 s
part=$1 folder=$2 out=$3 seconds=$4
chosen=benchmarks/results/policy_chosen/probed.jsonl.gz live=benchmarks/results/policy_live/probed.jsonl.gz
export PYTHONPATH=$PWD:$folder/lib:$PYTHONPATH
mkdir -p "$out"
case $part in
probed)
    timeout $((${seconds:-130} + 10)) python3 -m benchmarks.policy.live.probed --out "$out/probed" --files "$folder/tasks,$folder/outside" --seeds 1 --whole 128 \
        --searches policy,unasked,random,greedy,evolve --jobs 14 --limit "${seconds:-130}" ;;
judged)
    timeout $((${seconds:-80} + 10)) python3 -m benchmarks.policy.live.judged --out "$out/judged" --files "$folder/tasks" --found "$chosen" \
        --live --jobs 12 --limit "${seconds:-80}" ;;
verified)
    timeout $((${seconds:-125} + 10)) python3 -m benchmarks.policy.live.probed --out "$out/verified" --files "$folder/tasks,$folder/outside" \
        --searches policy,random,greedy,unasked --seeds 1 --whole 0 --verifier --found "$chosen,$live" --jobs 10 \
        --limit "${seconds:-125}" ;;
*) echo "expected probed, judged or verified, saw $part" >&2 && exit 2 ;;
esac
