#!/bin/sh
# What the mpi domain still wants from one H200, the most valuable first, every part with a limit of its own and its rows in files of its own:
# h200.sh OUT ARCHIVE, where ARCHIVE is an Open MPI that knows GPUs (openmpi_cuda.sh, packed by tar). About 200 s.
set -u
out=$1 archive=$2 python=${PYTHON:-python3}
mpi=$(mktemp -d)
tar xzf "$archive" -C "$mpi"
mkdir -p "$out"
part() { # NAME LIMIT COMMAND...
    name=$1 limit=$2
    shift 2
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: code $?, $(($(date +%s) - start)) s" | tee -a "$out/parts.txt"
}
ranks() { echo "mpiexec --allow-run-as-root --oversubscribe --bind-to none --mca btl_vader_single_copy_mechanism none -n $1"; }

export WARPWRIGHT_MPI_PEER=on
programs="$python -m benchmarks.mpi.gpu_programs --mpi $mpi --sides 48 --once"
scaling="$python -m benchmarks.mpi.scaling --gpus 1 --out $out/scaling"
part programs_mpi4py 75 $programs --out "$out/programs" --languages mpi4py --processes 1 2
part programs_c 40 $programs --out "$out/programs" --languages C --processes 1 2
part scaling_8 60 $scaling --processes 8
part scaling_2 40 $scaling --processes 2 --share
part scaling_1 75 $scaling --processes 1 --mpi "$mpi" --library
part pack 45 env WARPWRIGHT_MPI_PEER=off $python -m benchmarks.mpi.pack_gpu --out "$out/pack"
part send_2 30 $(ranks 2) $python -m benchmarks.mpi.send_gpu --out "$out/send_2" --only "1 MiB 8 of 512,16 MiB 512 of 1024,halo 512"
cat "$out/parts.txt"
