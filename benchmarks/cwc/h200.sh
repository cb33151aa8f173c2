#!/bin/bash
# Short runs of benchmarks.cwc.cifar on a GPU: the most valuable trainings first, rows kept after every training.
#
#   bash benchmarks/cwc/h200.sh first|second SETS OUT SECONDS      SETS holds NAME.tar.xz of NAME/{train,test}.pack,
#                                                                  and for the second run cwc-first.tgz, from which it goes on
#
# Trainings work in a folder of their own, whose small files go to OUT/cwc-RUN.tgz every few seconds: a run that is cut off leaves what it had.
set -u
which=$1 sets=$2 out=$3 seconds=$4
began=$SECONDS work=${TMPDIR:-/tmp}/warpwright-cwc
rm -rf "$work"  # of a fixed name: a task of the archive is known by its path
mkdir -p "$out" "$work/out"
out=$(cd "$out" && pwd)

unpack() {
    mkdir -p "$work/out/$1"
    python3 - "$sets/$1.tar.xz" "$work" <<'EOF'
import sys, tarfile
tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="data")
EOF
}

keep() {
    (cd "$work/out" && tar czf "$out/.$which.tgz" */*.jsonl */*.txt $(ls */README.md */front.svg */front.db 2>/dev/null) 2>/dev/null)
    [ -s "$out/.$which.tgz" ] && mv "$out/.$which.tgz" "$out/cwc-$which.tgz"
}

# run NAME RESERVED ...: so many of the seconds are left for what comes after
run() {
    name=$1 limit=$((seconds - (SECONDS - began) - $2))
    shift 2
    timeout -k 5 "$((limit + 15))" python3 -u -m benchmarks.cwc.cifar --train "$work/$name/train.pack" --test "$work/$name/test.pack" \
        --out "$work/out/$name" --algorithms 4 --whole --seconds "$limit" ${DRY:-} "$@" 2>&1 | tee -a "$work/out/$name/log.txt"
    keep
}

(while sleep 5; do keep; done) &
keeper=$!
case $which in
first)
    unpack c10
    run c10 16 --parts speed,plain,front,adversarial,published,vgg16,processed --front-seconds 115 \
        --epochs plain=12,front=6,adversarial=6,published=8,vgg16=8,processed=8 --seeds plain=3,front=2,adversarial=1,published=1
    ;;
second)
    [ -f "$sets/cwc-first.tgz" ] && tar xzf "$sets/cwc-first.tgz" -C "$work/out"
    unpack c10
    run c10 16 --parts plain,front,published,adversarial,processed,apart --front-seconds "$((seconds / 4))" \
        --epochs plain=12,front=6,published=8,adversarial=6,processed=8,apart=12 --seeds plain=3,front=2,published=1,adversarial=1,apart=3
    ;;
esac
kill "$keeper"
rm -rf "$work"
