#!/bin/bash
# What the sass domain is measured by on a GPU, part by part: h200.sh PART FOLDER OUT. Parts may not run beside other GPU work.
# FOLDER holds cubins/ (benchmarks.sass.variants --build), public/ (NAME.cubin with NAME.py), start/
# (schedules of earlier runs), second/ (the fastest settings, --keep, and what is to be searched again) and py/ (sb3-contrib, where it is not installed).
#   variants   fourteen kernels under some twenty-five settings of the compiler each                                                        30 s
#   suite      fourteen kernels with renamed registers, six of them with the compiler's too, launches of what is accepted compared         115 s
#   public     ten public cubins                                                                                                           65 s
#   second     six kernels under their fastest settings, the convolution by the rule that its failures taught, three public cubins         65 s
#   decorator  a Triton kernel that is bound by arithmetic, and one that is not                                                            35 s
#   polish     a model's fused CUDA kernel, searched, then rescheduled                                                                     60 s
#   agents     10,000 measurements each of random drawing, screening and PPO on the smallest kernel                                        95 s
#   rest       what no run has shown yet: screening and random drawing up to 10,000 measurements and where the device's time goes (80 s), the
#              decorator with renamed registers (50 s), a polish with something to polish (170 s); each writes its rows as they come
#   rejudged   the accepted schedules of earlier runs, judged warm and cold, FOLDER/cubins being those of benchmarks.sass.flagged                  60 s
#   again      a search of the fourteen kernels from those schedules, judged warm and cold                                                        90 s
#   ppo        what has not had 10,000 measurements yet: greedy, annealing, evolution and PPO (FOLDER/py: sb3-contrib)                           155 s
#   ppo_alone  PPO to 10,000 measurements, and screening, which lacked 148                                                                      150 s
#   agents_second  a second kernel, the stencil, 1,000 measurements of each of six agents                                                        65 s
#   blocks     two public kernels of hundreds of blocks (FOLDER/more/public)                                                                     60 s
#   launches   every accepted schedule that there is a cubin for, 30,000 launches of each compared (FOLDER/accepted: of other cubins)             60 s
#   restarts   what a candidate that breaks its child costs, with a spare and without                                                             30 s
#   flags      a kernel's settings raced, then the schedule of the fastest searched, each share told apart                                        60 s
#   crash      the one of 27,735 candidates that crashed (FOLDER/crash), as it was and with its short distances put right, all and all but one    20 s
part=$1 folder=$2 out=$3
if [ "$part" = rest ]; then
    for one in agents_rest decorator_rest polish_rest; do bash "$0" "$one" "$folder" "$out" || echo "$one ended with $?"; done
    exit
fi
kernels=batched_matmul,convolution,feed_forward,flash_attention,flash_decoding,layernorm,matmul_bf16,matmul_fp8,matmul_leakyrelu,nbody,rmsnorm
kernels=$kernels,sgemm,softmax,stencil
compiled=convolution__as,layernorm__as,rmsnorm__as,sgemm__as,softmax__as,stencil__as
second=convolution,convolution__as,flash_decoding__flags,layernorm__flags,nbody__flags,rmsnorm__flags,softmax__flags,stencil__flags
second=$second,flash_minimal,llmc_permute,black_scholes
mkdir -p "$out"
case $part in
variants) timeout 45 python3 -m benchmarks.sass.variants --folder "$folder/cubins" --only "$kernels" --out "$out/variants" --keep "$out/fastest" --limit 20 ;;
suite)
    timeout 140 python3 -m benchmarks.sass.suite --folder "$folder/cubins" --only "$kernels,$compiled" --registers "$kernels" --start "$folder/start" \
        --limit 100 --launches 5 --out "$out/suite" ;;
public) timeout 80 python3 -m benchmarks.sass.suite --folder "$folder/public" --registers all --limit 54 --launches 2 --out "$out/public" ;;
second)
    timeout 80 python3 -m benchmarks.sass.suite --folder "$folder/second" --only "$second" --registers "$second" --start "$folder/start2" --limit 55 \
        --launches 3 --out "$out/second" ;;
decorator) timeout 60 python3 -m benchmarks.sass.decorated --out "$out/decorator" --only attraction,softmax --seconds 12 ;;
polish)
    task=$PWD/benchmarks/sass/tasks/depthwise.py
    root=$PWD; cd "$out" && PYTHONPATH=$root timeout 90 python3 -m warpwright optimize "$task" --target cuda --budget 15s --polish 15s ;;
agents_rest)
    timeout 85 python3 -m benchmarks.sass.agents --out "$out/agents" --folder "$folder/cubins" --only softmax --proposals 10000 --limit 70 --agents screen,random ;;
decorator_rest) timeout 60 python3 -m benchmarks.sass.decorated --out "$out/decorator" --only attraction --seconds 10 ;;
polish_rest)
    task=$PWD/benchmarks/sass/tasks/iterated.py
    root=$PWD; cd "$out" && PYTHONPATH=$root timeout 170 python3 -m warpwright optimize "$task" --target cuda --budget 90s --baselines eager --polish 30s ;;
rejudged)
    timeout 75 python3 -m benchmarks.sass.replay --run benchmarks/results/sass_h200 --folder "$folder/cubins" --only "$kernels,$compiled" --jobs 8 \
        --limit 60 --out "$out/rejudged" ;;
again)
    timeout 110 python3 -m benchmarks.sass.suite --folder "$folder/cubins" --only "$kernels" --registers flash_decoding,nbody,sgemm,stencil \
        --start benchmarks/results/sass_h200/schedules --limit 85 --out "$out/again" ;;
ppo)
    PYTHONPATH=$folder/py:$PYTHONPATH timeout 165 python3 -m benchmarks.sass.agents --out "$out/ppo" --folder "$folder/cubins" --only softmax \
        --proposals 10000 --limit 152 --agents ppo,greedy,anneal,evolve --threads 4 ;;
ppo_alone)
    PYTHONPATH=$folder/py:$PYTHONPATH timeout 165 python3 -m benchmarks.sass.agents --out "$out/ppo_alone" --folder "$folder/cubins" --only softmax \
        --proposals 10000 --limit 150 --agents ppo,screen --threads 4 ;;
agents_second)
    PYTHONPATH=$folder/py:$PYTHONPATH timeout 75 python3 -m benchmarks.sass.agents --out "$out/agents_second" --folder "$folder/cubins" --only stencil \
        --proposals 1000 --limit 62 --agents random,greedy,anneal,evolve,screen,ppo --threads 4 ;;
blocks)
    timeout 75 python3 -m benchmarks.sass.suite --folder "$folder/more/public" --only leimao_v06,leimao_v07 --limit 55 --launches 2 --out "$out/blocks" ;;
launches)
    results=benchmarks/results
    timeout 75 python3 -m benchmarks.sass.launches --cubins "$folder/cubins" "$folder/public" "$folder/more/public" --launches 30000 --limit 50 \
        --schedules $results/sass_judged_h200/schedules $results/sass_h200/schedules "$folder/accepted/more" $results/sass_outside/schedules \
        --out "$out/launches" ;;
flags)
    root=$PWD kernel=$PWD/benchmarks/sass/kernels/stencil.cu harness=$PWD/benchmarks/sass/harnesses/stencil.py
    mkdir -p "$out/flags" && cd "$out/flags" && export PYTHONPATH=$root
    timeout 50 python3 -m warpwright sass flags "$kernel" --harness "$harness" --seconds 12 -o . &&
        timeout 60 python3 -m warpwright optimize fastest.cubin --harness "$harness" --target cubin --search screen --budget 12s --option shipped=shipped.cubin ;;
restarts) timeout 50 python3 -m benchmarks.sass.restarts --out "$out/restarts" --rounds 5 --limit 30 ;;
crash)
    timeout 30 python3 -m benchmarks.sass.narrow --cubin "$folder/public/hgemm_ps2r.cubin" --schedule "$folder/crash/hgemm_ps2r_crashed.json" --seconds 15 \
        --out "$out/crash" ;;
agents)
    PYTHONPATH=$folder/py:$PYTHONPATH timeout 95 python3 -m benchmarks.sass.agents --out "$out/agents" --folder "$folder/cubins" --only softmax --proposals 10000 --limit 75 \
        --agents random,screen,ppo ;;
*)
    echo "expected variants, suite, public, second, decorator, polish, agents, rest, rejudged, again, ppo, ppo_alone, agents_second, blocks, launches, restarts, flags or crash, saw $part" >&2
    exit 2
    ;;
esac
