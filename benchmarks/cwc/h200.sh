#!/bin/bash
# One short run of benchmarks.cwc.cifar on a GPU: two image sets, the most valuable trainings first, rows kept after every training.
#
#   bash benchmarks/cwc/h200.sh SETS OUT [SECONDS]     SETS holds c10.tar.xz and tin100.tar.xz, each NAME/{train,test}.pack
#
# Trainings work in a folder of their own, whose small files go to OUT/cwc.tgz every few seconds: a run that is cut off leaves what it had.
set -u
sets=$1 out=$2 seconds=${3:-385}
began=$SECONDS work=$(mktemp -d)
mkdir -p "$out" "$work/out/c10" "$work/out/tin100"
out=$(cd "$out" && pwd)

unpack() {
    python - "$sets/$1.tar.xz" "$work" <<'EOF'
import sys, tarfile
tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="data")
EOF
}

keep() {
    (cd "$work/out" && tar czf "$out/.cwc.tgz" */*.jsonl */*.txt $(ls */README.md */front.svg 2>/dev/null) && mv "$out/.cwc.tgz" "$out/cwc.tgz")
}

run() {
    name=$1 limit=$2
    shift 2
    timeout -k 5 "$((limit + 20))" python -u -m benchmarks.cwc.cifar --train "$work/$name/train.pack" --test "$work/$name/test.pack" \
        --out "$work/out/$name" --algorithms 4 --whole --seconds "$limit" ${DRY:-} "$@" 2>&1 | tee -a "$work/out/$name/log.txt"
    keep
}

unpack c10 && unpack tin100
(while sleep 5; do keep; done) &
keeper=$!
last=60
left=$((seconds - (SECONDS - began) - last))
run c10 "$left" --parts speed,plain,adversarial,published,vgg16,processed \
    --epochs plain=16,adversarial=6,published=8,vgg16=8,processed=8 --seeds plain=3,adversarial=1,published=1
left=$((seconds - (SECONDS - began) - 8))  # what is cut off at the limit itself takes some seconds to end
run tin100 "$left" --set "Tiny-ImageNet at 32 px, 100 classes" --parts plain --epochs plain=10 --seeds plain=1
kill "$keeper"
rm -rf "$work"
