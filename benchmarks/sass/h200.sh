#!/bin/bash
# What the sass domain is measured by on a GPU, part by part: h200.sh PART FOLDER OUT. Parts may not run beside other GPU work.
# FOLDER holds cubins/ (benchmarks.sass.variants --build), public/ (NAME.cubin with NAME.py) and start/ (schedules of earlier runs).
#   variants   fourteen kernels under some twenty-five settings of the compiler each                                                        30 s
#   suite      fourteen kernels with renamed registers, six of them with the compiler's too, launches of what is accepted compared         115 s
#   public     ten public cubins                                                                                                           45 s
#   flagged    on from the fastest settings and from the suite's schedules                                                                 80 s
#   decorator  a Triton kernel that is bound by arithmetic, and one that is not                                                            35 s
#   polish     a model's fused CUDA kernel, searched, then rescheduled                                                                     60 s
#   agents     10,000 measurements each of random drawing, screening and PPO on the smallest kernel                                       100 s
part=$1 folder=$2 out=$3
kernels=batched_matmul,convolution,feed_forward,flash_attention,flash_decoding,layernorm,matmul_bf16,matmul_fp8,matmul_leakyrelu,nbody,rmsnorm
kernels=$kernels,sgemm,softmax,stencil
compiled=convolution__as,layernorm__as,rmsnorm__as,sgemm__as,softmax__as,stencil__as
mkdir -p "$out"
case $part in
variants) timeout 45 python3 -m benchmarks.sass.variants --folder "$folder/cubins" --only "$kernels" --out "$out/variants" --keep "$out/fastest" --limit 20 ;;
suite)
    timeout 140 python3 -m benchmarks.sass.suite --folder "$folder/cubins" --only "$kernels,$compiled" --registers "$kernels" --start "$folder/start" \
        --limit 100 --launches 5 --out "$out/suite" ;;
public) timeout 60 python3 -m benchmarks.sass.suite --folder "$folder/public" --registers all --limit 36 --launches 2 --out "$out/public" ;;
flagged)
    timeout 100 python3 -m benchmarks.sass.suite --folder "$out/fastest" --registers all --start "$out/suite/schedules" --limit 70 --launches 4 \
        --out "$out/flagged" ;;
decorator) timeout 60 python3 -m benchmarks.sass.decorated --out "$out/decorator" --only attraction,softmax --seconds 12 ;;
polish)
    task=$PWD/benchmarks/sass/tasks/depthwise.py
    root=$PWD; cd "$out" && PYTHONPATH=$root timeout 90 python3 -m warpwright optimize "$task" --target cuda --budget 15s --polish 15s ;;
agents)
    timeout 120 python3 -m benchmarks.sass.agents --out "$out/agents" --folder "$folder/cubins" --only softmax --proposals 10000 --limit 100 \
        --agents random,screen,ppo ;;
esac
