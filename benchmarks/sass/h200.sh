#!/bin/bash
# What the sass domain is measured by on a GPU, part by part: h200.sh PART CUBINS OUT. Parts may not run beside other GPU work.
#   suite      fourteen kernels with renamed registers, five of them under other flags too, other flags measured, five public cubins      95 s
#   again      on from where the suite came to, with its accepted schedules compared launch by launch                                     70 s
#   decorator  a Triton kernel that is bound by arithmetic, and two that are not                                                          60 s
#   polish     a model's fused CUDA kernel, searched, then rescheduled                                                                    75 s
#   agents     10,000 measurements each of four agents and PPO on the smallest cubin of the folder                                       130 s
part=$1 cubins=$2 out=$3
kernels=batched_matmul,convolution,feed_forward,flash_attention,flash_decoding,layernorm,matmul_bf16,matmul_fp8,matmul_leakyrelu,nbody,rmsnorm
kernels=$kernels,sgemm,softmax,stencil
flagged=flash_decoding__flags,nbody__flags,stencil__flags,rmsnorm__flags,softmax__flags
flags=$(python3 -c "import json; print(','.join(sorted(n for n, f in json.load(open('$cubins/flags.json')).items() if not f['searched'])))")
public=scalar_products,unsloth_rms,unsloth_swiglu_backward,walsh,warptiling
kept=benchmarks/results/sass_h200/schedules
mkdir -p "$out"
case $part in
suite)
    timeout 95 python3 -m benchmarks.sass.suite --folder "$cubins" --only "$kernels,$flagged,$flags,$public" --registers all --start $kept \
        --limit 78 --launches 5 --out "$out/suite" ;;
again)
    timeout 80 python3 -m benchmarks.sass.suite --folder "$cubins" --only "$kernels,$flagged" --registers all --start "$4" \
        --limit 55 --launches 10 --out "$out/again" ;;
decorator) timeout 75 python3 -m benchmarks.sass.decorated --out "$out/decorator" --seconds 18 ;;
polish)
    cd "$out" && timeout 90 python3 -m warpwright optimize "$OLDPWD/benchmarks/sass/tasks/depthwise.py" --target cuda --budget 25s --polish 20s ;;
agents)
    timeout 140 python3 -m benchmarks.sass.agents --out "$out/agents" --folder "$cubins" --only walsh --proposals 10000 --limit 130 \
        --agents random,greedy,evolve,screen,ppo ;;
esac
