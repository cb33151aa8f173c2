#!/bin/bash
# Time the kernels of speed.py on a machine without libclang, from the C++ that `speed --write` put into a folder.
#
#     bash benchmarks/transpile/elsewhere.sh TEXTS OUT FIRST_CORE [OTHER_TEXTS ...]
#
# TEXTS: folders `all` and `outside` as written. Everything is built first, side by side. Then, each bound to a core of its own from FIRST_CORE on,
# every second one: the suite in three parts, the kernels outside, and then, one after another on FIRST_CORE, products of matrices beside MKL from
# TEXTS/all and each of OTHER_TEXTS (folders of other states' C++). Rows go to OUT/PART.md, times are the processor's of one thread. ONLY=products leaves
# out all but the products.
texts=$1 out=$2 core=$3
shift 3
mkdir -p "$out"
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 WARPWRIGHT_CACHE=${WARPWRIGHT_CACHE:-/tmp/transpile_speed} PYTHONUNBUFFERED=1
products='gemm,ladder naive,ladder coalesced,ladder shared,ladder column,ladder tile,ladder float4,ladder warp,ladder stages'
timed() { # NAME CORE SECONDS ARGUMENTS...
  taskset -c "$2" timeout "$3" python3 -m benchmarks.transpile.speed --cpu-time --markdown "$out/$1.md" "${@:4}" > "$out/$1.log" 2>&1
}
python3 - "$texts/all" "$texts/outside" "$@" <<'PYTHON'
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from benchmarks.transpile import speed
from warpwright import native
from warpwright.domains.transpile.launch import library
folders = [one for one in sys.argv[1:] if "outside" not in one or os.environ.get("ONLY") != "products"]
texts = [file.read_text() for folder in folders for file in sorted(Path(folder).glob("*.vectors.cpp"))]
hand = [(speed.HERE / f"{name}.cpp").read_text() for name in speed.TWINS]
with ThreadPoolExecutor(12) as pool:
    begun = [pool.submit(library.built, text) for text in texts]
    begun += [pool.submit(native.build, text, flags=speed.HAND_FLAGS) for text in hand]
    for one in begun:
        one.result()
PYTHON
names() { python3 -c "
from benchmarks.transpile.speed_works import works
names = list(dict.fromkeys(work.name for work in works()))
print(','.join(names[$1::3]))"; }
parts=$(nproc)
for part in $([ "$ONLY" = products ] || echo 0 1 2); do
  timed "part_$part" $(((core + 2 + 2 * part) % parts)) 110 --repeats 15 --without fibers,loops,torch --texts "$texts/all" --only "$(names $part)" &
done
[ "$ONLY" = products ] || timed outside $(((core + 8) % parts)) 110 --outside --repeats 15 --without fibers,loops,torch --texts "$texts/outside" &
for one in "$texts/all" "$@"; do
  timed "products_$(basename "$one")" "$core" 60 --repeats 30 --without fibers,loops --texts "$one" --only "$products"
done
wait
