#!/bin/bash
# What is left to be measured of our kernels on an H200, part by part; each part has a hard limit and writes its rows as they come.
#
#     bash benchmarks/kernelbench/h200.sh PART FOLDER OUT [SECONDS]
#     LANES="padded:25 verdicts:540|wide:45 cuda_l1:330" bash benchmarks/kernelbench/h200.sh lanes FOLDER OUT
#
# FOLDER has KB (KernelBench's level1, level2, level3, footprints.json: eager peaks, as `run --footprints` makes it, and sizes.json, as `room` does, so
# that more tasks have room at once), h100.json (CUDA-L1's release), lib (einops, vit_pytorch) and, where an earlier machine is gone, what it brought
# back: kernels.tgz, archives.tgz. Parts, with seconds:
#
#   padded    direct_convolution with zeros around x, alone; then v0's L2-43 whole, which it ends in                                      45
#   t3        first programs in TF32's track of tasks whose norms and arg-extrema were mended                                             30
#   misses    first programs of networks that lose, or TASKS: eager with the channels last beside them, then torch.compile               140
#   wide      attention with heads of 512 and 1,024 in 16 bits, with a bias, and decoding                                                 45
#   hopper    attention in 16 bits by flash_hopper beside cuDNN's: right, with a watchdog, then timed in several shapes                  75
#   sums      first programs of sums and extrema of columns, and of a batch norm                                                         45
#   streams   kernels that memory binds, in several shapes each: sums and extrema of columns, losses, norms, maps                          70
#   all       first programs of all 250 tasks, strict                                                                                   330
#   all_tf32  the same in TF32's track                                                                                                  215
#   odd       convolutions of images whose places are no multiple of four, with blocks of one sample each beside the usual ones           45
#   backward  attention's backward kernels, heads of 256 and 16 bits                                                                      70
#   step      a training step with causal attention, whole, by verdict                                                                   105
#   plan      launch plans: the host's time, and from idle to idle                                                                        45
#   merger    the vision transformer whose torch.compile had no time, by verdict                                                          75
#   verdicts  KernelBench by verdict, in the order drawn by SEED (811), cold, on GPUS (1); called again it goes on where it was          400
#   large     the same of the tasks whose eager peak is above 4.5 GB, as many at once as fit, VERDICT_JOBS (2) at most; goes on      300
#   warm      the same tasks once more by an archive that knows what verdicts found, and the caches of the compilers                    300
#   tf32      KernelBench by verdict in TF32's track                                                                                     300
#   cuda_l1   CUDA-L1's released programs beside ours, v0 sizes                                                                          330
#   modules   the 40 modules of benchmarks/kernels by verdict, those held out first; called again it goes on                             500
#   lanes     the parts of LANES, those before | on the first GPU and one half of the cores, the others on the second, side by side;
#             `first`, `second` and `third` in the place of LANES are calls of ten minutes: 30 of them decide all of the above
#
# Verdicts work on VERDICT_JOBS tasks (6) at once, as far as their memory at most, added up, is PROMISED times (1) a GPU's: nine by 1.6 were no quicker
# and filled it. Parts work in WORK (/tmp/warpwright_kernels), so that a later call on the same machine goes on; OUT has kernels.tgz, all rows and logs, and
# archives.tgz, all archives, after each of them and every 40 s. DRY=1: everything small on the CPU.
set -u
part=$1 folder=$(realpath "$2") out=$3 limit=${4:-}
kb=$folder/KB work=${WORK:-/tmp/warpwright_kernels} seed=${SEED:-811} dry=${DRY:+--dry} device=${DRY:+cpu}
device=${device:-cuda}
mkdir -p "$out" "$work"
out=$(realpath "$out")
export PYTHONPATH=$PWD:$folder/lib${PYTHONPATH:+:$PYTHONPATH}
patience=1
[ -z "$dry" ] || export TRITON_INTERPRET=1 patience=4 # an interpreter, on a CPU
often=${OFTEN:-40} # seconds after which what is there is in OUT: a call may end before the part that it is at
jobs=$(($(nproc) < 15 ? $(nproc) : 15))

# limited NAME SECONDS MODULE ...: a module's output goes to WORK/NAME/log.txt; it is asked to end after so many seconds, and killed 4 s later
limited() {
    local name=$1 seconds=$2
    shift 2
    mkdir -p "$work/$name"
    while sleep "$often"; do bring_back; done </dev/null >/dev/null 2>&1 & # its last sleep outlives it, and would keep who reads this script's output
    local keeper=$!
    timeout -s INT -k 4 $((seconds * patience)) python3 -u -m "$@" >>"$work/$name/log.txt" 2>&1
    local code=$?
    kill "$keeper" 2>/dev/null
    echo "$name: exit $code, $SECONDS s, $(find "$work/$name" -name '*.jsonl' -exec cat {} + | wc -l) rows"
    bring_back
}

# whole copies of archives that are being written to
backup='
import pathlib, sqlite3, sys
work, kept = map(pathlib.Path, sys.argv[1:])
kept.mkdir(exist_ok=True)
for file in work.rglob("*.db"):
    copy = kept / file.relative_to(work)
    copy.parent.mkdir(parents=True, exist_ok=True)
    sqlite3.connect(file).backup(sqlite3.connect(copy))
'

# whatever is there is in OUT at once: a call that is ended loses nothing but what it was at
bring_back() {
    (
        flock 9
        tar -C "$work" --exclude='*.db*' --exclude=cache --exclude=programs --exclude='*.lock' -czf "$out/.rows" . &&
            mv "$out/.rows" "$out/kernels.tgz"
        python3 -c "$backup" "$work" "$out/.kept" && tar -C "$out/.kept" -czf "$out/.archives" . && mv "$out/.archives" "$out/archives.tgz"
        rm -rf "$out/.kept"
    ) 9>"$work/.lock"
}

# first NAME SECONDS ...: first programs, no verdicts
first() {
    local name=$1 seconds=$2
    shift 2
    limited "$name" $((seconds + 4)) benchmarks.kernelbench.first --kernelbench "$kb" --footprints "$kb/footprints.json" --brief --wide 3 $dry \
        --seconds "$seconds" --out "$work/$name" "$@"
}

# verdicts NAME SECONDS ...: through the front door
verdicts() {
    local name=$1 seconds=$2
    shift 2
    limited "$name" $((seconds + 4)) benchmarks.kernelbench.whole --kernelbench "$kb" --seed "$seed" --first 0 --verdicts "$seconds" $dry \
        --gpus "${GPUS:-1}" --verdict-jobs "${VERDICT_JOBS:-6}" --promised "${PROMISED:-1}" --out "$work/$name" "$@"
}

# sweep NAME SECONDS ...: first programs of all levels
sweep() {
    local name=$1 seconds=$2
    shift 2
    limited "$name" $((seconds + 4)) benchmarks.kernelbench.whole --kernelbench "$kb" --seed "$seed" --verdicts 0 --first "$seconds" --jobs "$jobs" \
        --resume $dry --out "$work/$name" "$@"
}

# released NAME SECONDS ...: CUDA-L1's programs beside ours
released() {
    local name=$1 seconds=$2
    shift 2
    limited "$name" $((seconds + 6)) benchmarks.kernelbench.cuda_l1_beside --cuda-l1 "$folder/h100.json" --seed "$seed" --jobs "$jobs" $dry \
        --seconds "$seconds" --out "$work/$name" "$@"
}

# lane GPU PART:SECONDS ...: parts one after the other on one GPU and its half of the cores
lane() {
    local gpu=$1 half=$(($(nproc) / 2))
    shift
    [ "$half" -gt 0 ] || half=1
    for one in "$@"; do
        CUDA_VISIBLE_DEVICES=$gpu taskset -c $((gpu * half))-$(((gpu + 1) * half - 1)) bash "$0" "${one%:*}" "$folder" "$out" "${one#*:}"
    done
}

if [ ! -e "$work/.begun" ]; then # a machine that is new goes on where the last one was
    for kept in kernels archives; do
        [ ! -e "$folder/$kept.tgz" ] || tar -C "$work" -xzf "$folder/$kept.tgz"
    done
    touch "$work/.begun"
fi
misses=${TASKS:-3:18,3:5,3:26,3:45}
case $part in
padded)
    limited padded 20 benchmarks.kernels.padded --seconds 15 $dry --out "$work/padded"
    released padded_whole $((${limit:-45} - 26)) --tasks 2:43 --proposals 4
    ;;
t3) first t3 $((${limit:-30} - 4)) --precision tf32 --baselines compile,cuda_graph --jobs 10 --last 4 --tasks 2:62,2:88,2:94,2:75,2:37,2:30,1:51,1:52 ;;
misses)
    half=$((${limit:-140} / 2 - 4))
    first misses $half --tasks $misses --baselines channels_last --proposals 2 --jobs 4 --kernels
    first misses_compile $half --tasks $misses --baselines compile --proposals 2 --jobs 4
    ;;
wide)
    limited wide "${limit:-45}" benchmarks.kernels.attention --cases "bf16 4096 x 512|bf16 2048 x 1024|bf16 2048 x 512|decode, 512|512, bias" \
        --ways chosen --no-compile --seconds $((${limit:-45} - 5)) --jobs "$((jobs < 6 ? jobs : 6))" $dry --out "$work/wide"
    ;;
hopper)
    cases="2048 x 64|2048 x 128|1024 x 256, causal, 8|4096 x 128|16384 x 128|8 of 32|heads of|200 rows|ViT|float16"
    limited hopper_first 25 benchmarks.kernels.flash_hopper --cases "$cases" --watchdog --seconds 20 $dry --out "$work/hopper_first"
    limited hopper "$((${limit:-75} - 25))" benchmarks.kernels.flash_hopper --ways all --seconds $((${limit:-75} - 30)) $dry --out "$work/hopper"
    ;;
sums) first sums $((${limit:-45} - 4)) --baselines compile,cuda_graph --jobs 10 --last 4 --tasks 1:47,1:48,1:49,1:51,1:52,1:53,1:33 --still ;;
streams)
    limited streams "${limit:-70}" benchmarks.kernels.streams --seconds $((${limit:-70} - 15)) --jobs "$jobs" $dry --out "$work/streams"
    ;;
all) sweep all $((${limit:-330} - 5)) ;;
all_tf32) sweep all_tf32 $((${limit:-215} - 5)) --precision tf32 ;;
odd)
    limited odd "${limit:-45}" benchmarks.kernels.implicit_convolution --cases "half odd" --ways chosen --no-compile \
        --seconds $((${limit:-45} - 5)) --jobs "$((jobs < 10 ? jobs : 10))" $dry --out "$work/odd"
    ;;
backward)
    limited backward "${limit:-70}" benchmarks.kernels.attention_backward --cases "256|bf16" --ways all --no-compile \
        --seconds $((${limit:-70} - 5)) --jobs "$jobs" $dry --out "$work/backward"
    ;;
step)
    limited step "${limit:-105}" benchmarks.training_step causal_attention --device "$device" --budget "$((${limit:-105} - 20))s" $dry \
        --out "$work/step"
    ;;
plan) limited plan "${limit:-45}" benchmarks.kernels.launch_plan --seconds $((${limit:-45} - 8)) $dry --out "$work/plan" ;;
merger)
    limited merger "${limit:-75}" benchmarks.third_party merger_vit --budget "$((${limit:-75} - 12))s, until faster" --baselines eager,compile \
        --device "$device" --trace --out "$work/merger/rows.jsonl"
    ;;
verdicts) verdicts verdicts $((${limit:-400} - 5)) --resume ;;
large) # a CUDA graph, which copies its inputs, takes 1.16 to 7.6 times as long as eager or compile in 58 of these, and memory of two calls
    VERDICT_JOBS=${VERDICT_JOBS:-2} verdicts large $((${limit:-300} - 5)) --baselines eager,compile --resume --smallest 4.5 --largest inf --last 60
    ;;
warm)
    mkdir -p "$work/warm/verdicts"
    [ ! -e "$work/verdicts/verdicts/archive.db" ] || cp "$work/verdicts/verdicts/archive.db" "$work/warm/verdicts/"
    verdicts warm $((${limit:-300} - 5))
    ;;
tf32) verdicts tf32 $((${limit:-300} - 5)) --resume --precision tf32 ;;
cuda_l1) released cuda_l1 $((${limit:-330} - 8)) ;;
modules)
    each=$((${limit:-500} / 2 - 25))
    for held in --held-out ""; do
        limited "modules${held//[^a-z]/}" $((each + 24)) benchmarks.kernels.modules $held --minutes "$(python3 -c "print($each / 60)")" \
            --jobs "$((jobs < 6 ? jobs : 6))" --budget "300s,2 proposals,until faster" $dry --out "$work/modules${held//[^a-z]/}"
    done
    ;;
lanes)
    case ${LANES:-} in
    "") echo "expected LANES=first, second, third or PART:SECONDS ... | PART:SECONDS ..., saw none" >&2 && exit 2 ;;
    first) LANES="hopper:75 odd:45 wide:45 backward:70 plan:40 misses:140 merger:75 streams:70|all_tf32:215 sums:45 padded:45 t3:30 verdicts:200" ;;
    second) LANES="cuda_l1:330 step:105 tf32:120|all:330 verdicts:220" ;;
    third) LANES="warm:330 large:240|modules:500" ;;
    esac
    lane 0 ${LANES%|*} &
    lane 1 ${LANES#*|} &
    wait
    ;;
*)
    known="padded, t3, misses, wide, hopper, sums, streams, all, all_tf32, odd, backward, step, plan, merger, verdicts, large, warm, tf32, cuda_l1, modules or lanes"
    echo "expected $known, saw $part" >&2
    exit 2
    ;;
esac
