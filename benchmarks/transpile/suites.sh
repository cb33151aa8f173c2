#!/bin/bash
# bash suites.sh PACK OUT SECONDS CORES [SET ...]: all suites again within a time, on a machine of many cores without a network.
#
# PACK holds rest.tar.xz (hec/src, rod, hpc: copies of HeCBench, Rodinia and HPCTransCompile; packages/clang), libclang.so.xz, and skip.jsonl, the rows
# of programs that need not run again. In turn, unless SETs are given: HPCTransEval's models, HeCBench, Rodinia, HPCTransEval's operators and graphs,
# KernelBench_c, random kernels; what did not end in the time has no row, or one that says `cut`.
pack=$1 out=$2 seconds=$3 cores=$4
shift 4
work=$(mktemp -d) && mkdir -p "$out"
python3 - "$pack" "$work" << 'PYTHON'
import lzma, sys, tarfile
from pathlib import Path
pack, work = map(Path, sys.argv[1:])
tarfile.open(pack / "rest.tar.xz").extractall(work)
(work / "packages/clang/native/libclang.so").write_bytes(lzma.open(pack / "libclang.so.xz").read())
PYTHON
export PYTHONPATH=$PWD:$work/packages OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
python3 -m benchmarks.hecbench.data "$work/hec/src" > "$out/data.log" 2>&1
declare -A place=([models]=$work/hpc [hecbench]=$work/hec/src [rodinia]=$work/rod [hpctranseval]=$work/hpc [kernelbench]=$work/hpc [random]=1000:3000)
sets=()
for name in "${@:-models hecbench rodinia hpctranseval kernelbench random}"; do
  for one in $name; do sets+=("$one=${place[$one]}"); done
done
python3 -m benchmarks.transpile.again --out "$out/rows.jsonl" --cores "$cores" --seconds $((seconds - 20)) --skip "$pack/skip.jsonl" \
  "${sets[@]}" > "$out/again.log" 2>&1
tail -3 "$out/again.log"
