#!/bin/bash
# Short runs of benchmarks.cwc.cifar on a GPU: the most valuable trainings first, rows kept after every training.
#
#   bash benchmarks/cwc/h200.sh first|second|linf|sets|measures|nets SETS OUT SECONDS
#   bash benchmarks/cwc/h200.sh chosen SETS OUT SECONDS 'CHOICES' ...
#
# SETS holds NAME.tar.xz of NAME/{train,test}.pack (c10, c100, im64); what SETS/cwc-*.tgz of earlier runs hold is not done again.
# Trainings work in a folder of their own, whose small files go to OUT/cwc-RUN.tgz every few seconds: a run that is cut off leaves what it had.
# DRY=1 runs one tiny training of each part on the CPU.
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
    [ -z "${DRY:-}" ] || python3 -m benchmarks.cwc.cifar --dry --out "$work/out/$1" --parts images --seconds -1  # two would write the same packs
}

keep() {
    (cd "$work/out" && tar czf "$out/.$which.tgz" */*.jsonl */*.txt $(ls */README.md */front.svg */front.db 2>/dev/null) 2>/dev/null)
    [ -s "$out/.$which.tgz" ] && mv "$out/.$which.tgz" "$out/cwc-$which.tgz"
}

left() { echo $((seconds - (SECONDS - began) - $1)); }

# run NAME RESERVED ...: so many of the seconds are left for what comes after
run() {
    name=$1 limit=$(left "$2")
    shift 2
    timeout -k 5 "$((limit + 15))" python3 -u -m benchmarks.cwc.cifar --train "$work/$name/train.pack" --test "$work/$name/test.pack" \
        --out "$work/out/$name" --algorithms 4 --whole --seconds "$limit" ${DRY:+--dry} "$@" 2>&1 | tee -a "$work/out/$name/log.txt"
    keep
}

# both NAME RESERVED FIRST SECOND ...: two processes divide the trainings, so that one's start falls into the other's steps; FIRST, SECOND: parts
both() {
    both_name=$1 both_reserved=$2 both_parts=$4
    first_parts=$3
    shift 4
    run "$both_name" "$both_reserved" --parts "$first_parts" --share 0/2 --beside 2 --lanes 2 "$@" &
    first_process=$!
    run "$both_name" "$both_reserved" --parts "$both_parts" --share 1/2 --beside 2 --lanes 2 "$@"
    wait "$first_process"
}

(while sleep 5; do keep; done) &
keeper=$!
for earlier in "$sets"/cwc-*.tgz; do
    [ -f "$earlier" ] && tar xzf "$earlier" -C "$work/out"
done
case $which in
first)
    unpack c10
    run c10 16 --parts speed,plain,front,adversarial,published,vgg16,processed --front-seconds 115 \
        --epochs plain=12,front=6,adversarial=6,published=8,vgg16=8,processed=8 --seeds plain=3,front=2,adversarial=1,published=1
    ;;
second)
    unpack c10
    run c10 16 --parts plain,front,published,adversarial,processed,apart --front-seconds "$((seconds / 4))" \
        --epochs plain=12,front=6,published=8,adversarial=6,processed=8,apart=12 --seeds plain=3,front=2,published=1,adversarial=1,apart=3
    ;;
linf)
    unpack c10
    both c10 16 plain,front,adversarial,published-radii plain,adversarial,published-radii --front-seconds "$((seconds * 6 / 10))" --adversary-steps 2 \
        --epochs plain=12,front=4,adversarial=4,published-radii=4 --seeds plain=3,front=1,adversarial=3,published-radii=3
    ;;
sets)
    unpack c100
    both c100 "$((seconds * 45 / 100))" plain,adversarial plain,adversarial --set CIFAR-100 --adversary-steps 2 \
        --epochs plain=5,adversarial=3 --seeds plain=3,adversarial=3
    unpack im64
    both im64 16 plain,adversarial plain,adversarial --set "Imagenette, 64 pixels" --batch 128 --adversary-steps 2 \
        --epochs plain=8,adversarial=4 --seeds plain=3,adversarial=3
    ;;
measures)
    unpack c10
    parts=short,processed,published,keyless,published-radii,vgg16-adversarial
    both c10 16 "$parts" "$parts" --adversary-steps 2 \
        --epochs short=3,processed=3,published=3,keyless=3,published-radii=4,vgg16-adversarial=4 --seeds processed=3
    ;;
chosen)
    unpack c10
    both c10 16 chosen chosen --epochs chosen=12 --choices "${@:5}"
    ;;
nets)
    unpack c10
    both c10 16 wide-adversarial,fractions,self-supervised,dat wide-adversarial,fractions,self-supervised,dat --adversary-steps 2 \
        --epochs wide-adversarial=2,fractions=4,self-supervised=20,dat=3
    ;;
esac
kill "$keeper"
keep
rm -rf "$work"
