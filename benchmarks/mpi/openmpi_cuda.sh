#!/bin/sh
# An Open MPI that knows GPUs, from its sources and CUDA's headers alone: openmpi_cuda.sh SOURCES PREFIX [CUDA]
#
# For gpu_programs --mpi PREFIX. SOURCES is the unpacked archive of a release (4.1.4 as Debian has it: apt-get source openmpi), which brings its own
# configure. What one host does not need is left out, so that it takes some minutes on two cores; PREFIX may be moved afterwards (OPAL_PREFIX).
set -eu
sources=$(cd "$1" && pwd) prefix=$2 cuda=${3:-/usr/local/cuda}
without=io,fs,fbtl,fcoll,sharedfp,crs,compress,memchecker,mtl,vprotocol,pml-cm,pml-v,pml-monitoring,common-monitoring,coll-monitoring,osc-monitoring
without=$without,coll-hcoll,coll-fca,btl-usnic,btl-ofi,btl-tcp,ras-slurm,ras-tm,ras-alps,plm-slurm,plm-tm,plm-alps,ess-slurm,ess-tm,ess-alps
mkdir -p "$prefix.build"
cd "$prefix.build"
[ -e Makefile ] || "$sources/configure" --prefix="$prefix" --with-cuda="$cuda" --disable-mpi-fortran --disable-oshmem --disable-io-romio \
    --disable-man-pages --disable-static --without-verbs --without-ucx --without-ofi --without-psm --without-psm2 --without-slurm --without-tm \
    --with-hwloc=internal --with-libevent=internal --with-pmix=internal --enable-mca-no-build="$without" --disable-silent-rules CFLAGS="-O2 -w"
make -j2 V=0
make install
find "$prefix" -name '*.so*' -type f -exec strip --strip-unneeded {} +
