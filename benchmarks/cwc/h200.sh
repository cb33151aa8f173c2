#!/bin/bash
# Short runs of benchmarks.cwc.cifar on a GPU: the most valuable trainings first, rows kept after every training.
#
#   bash benchmarks/cwc/h200.sh first|second|third|fourth|nets|authors|seeds|seeds-100|hundred|verify|alone|last|left|front|rest SETS OUT SECONDS
#   bash benchmarks/cwc/h200.sh chosen SETS OUT SECONDS 'CHOICES' ...
#
# SETS holds NAME.tar.xz of NAME/{train,test}.pack (c10, c100, im64; packs.sh makes them); what SETS/cwc-*.tgz of earlier runs hold is not done again.
# Runs of different names may go on at the same time. GPU=1 takes the second GPU. Sets whose packs are not there are left out.
# Trainings work in a folder of their own, whose small files go to OUT/cwc-RUN.tgz every few seconds: a run that is cut off leaves what it had.
# DRY=1 runs one tiny training of each part on the CPU.
set -u
which=$1 sets=$2 out=$3 seconds=$4
[ -z "${GPU:-}" ] || export CUDA_VISIBLE_DEVICES=$GPU
began=$SECONDS work=${TMPDIR:-/tmp}/warpwright-cwc-$which
rm -rf "$work"  # of a fixed name: a task of the archive is known by its path
mkdir -p "$out" "$work/out"
out=$(cd "$out" && pwd)

unpack() {
    [ -f "$sets/$1.tar.xz" ] || { echo "expected the packs of $1 in $sets, saw none: its trainings are left out" && return 1; }
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
        --out "$work/out/$name" --algorithms 2 --whole --seconds "$limit" ${DRY:+--dry} "$@" 2>&1 | tee -a "$work/out/$name/log.txt"
    keep
}

# divided NAME RESERVED FIRST OTHERS ...: three processes divide the trainings, so that one's preparations fall into the others' steps.
# FIRST, OTHERS: parts; OTHERS wait for the first one's part `speed`, which wants the GPU for itself, and start during its next part
divided() {
    set_name=$1 reserved=$2 first_parts=$3 other_parts=$4
    shift 4
    run "$set_name" "$reserved" --parts "$first_parts" --share 0/3 --beside 3 --lanes 2 "$@" &
    first_process=$!
    case $first_parts in
    *speed*) until grep -qs '"table": "parts", "part": "speed"' "$work/out/$set_name/notes.jsonl" || ! kill -0 "$first_process"; do sleep 0.2; done ;;
    esac
    run "$set_name" "$reserved" --parts "$other_parts" --share 1/3 --beside 3 --lanes 2 "$@" &
    second_process=$!
    run "$set_name" "$reserved" --parts "$other_parts" --share 2/3 --beside 3 --lanes 2 "$@"
    wait "$first_process" "$second_process"
}

key="warpwright-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"  # of no secret: a verify that was ended goes on only with the same images

# protected: the training images of CIFAR-10 as `warpwright protect` writes them
protected() {
    [ -z "${DRY:-}" ] && train=$work/c10/train.pack || train=$work/out/c10/dry_train.pack
    (umask 077 && echo "$key" >"$work/key")
    began_protecting=$SECONDS
    python3 -m warpwright protect "$train" "$work/protected" --key "$work/key" --preset apart --workers 8 --manifest "$work/manifest.jsonl"
    echo "protect: $((SECONDS - began_protecting)) s" | tee -a "$work/out/c10/protect.txt"
}

# verified RESERVED: four sets, two estimates and three counter-measures; what was trained before the time ended is in verify.jsonl
verified() {
    [ -z "${DRY:-}" ] && train=$work/c10/train.pack test=$work/c10/test.pack how="--device cuda --net resnet18 --batch 256 --epochs 6" ||
        { train=$work/out/c10/dry_train.pack test=$work/out/c10/dry_test.pack how="--device cpu --net small --batch 16 --epochs 1"; }
    started=$(date +%s.%N)
    timeout -k 5 "$(left "$1")" python3 -m warpwright verify "$train" "$work/protected" --test "$test" $how --crop 4 --flip --lanes 3 --seeds 1 \
        --store "$work/out/c10/verify.jsonl" --report "$work/verify.html" 2>&1 | tee -a "$work/out/c10/verify.txt"
    echo "verify: code ${PIPESTATUS[0]}, $(python3 -c "import time; print(f'{time.time() - $started:.1f}')") s" | tee -a "$work/out/c10/verify.txt"
    cp "$work/verify.html" "$out/" 2>/dev/null
    keep
}

pages="benchmarks/results/cwc_apart_h200 benchmarks/results/cwc_cifar_h200"
seeds="--presets apart --known $pages --lanes 2 --adversary-steps 2
    --epochs short=3,processed=3,keyless=3,fractions=4,fine-tuning=3,architectures=3,wide-adversarial=1,self-supervised=20
    --seeds processed=3,keyless=3,fractions=3,architectures=3,wide-adversarial=3,self-supervised=3"

of_imagenette() {
    run im64 5 $seeds --parts adversarial --set "Imagenette, 64 pixels" --batch 128 --beside 1 --epochs adversarial=6 --seeds adversarial=3
}

(while sleep 5; do keep; done) >/dev/null 2>&1 &  # a reader of our output need not wait for its last sleep
keeper=$!
for earlier in "$sets"/cwc-*.tgz; do  # several may hold a store of one name: what a training was, its key says
    [ -f "$earlier" ] || continue
    mkdir -p "$work/earlier" && tar xzf "$earlier" -C "$work/earlier"
    for store in "$work"/earlier/*/store-*.jsonl "$work"/earlier/*/verify.jsonl; do
        [ -f "$store" ] || continue
        mkdir -p "$work/out/$(basename "$(dirname "$store")")" && cat "$store" >>"$work/out${store#"$work/earlier"}"
    done
    for archive in "$work"/earlier/*/front.db; do
        [ ! -f "$archive" ] || { mkdir -p "$work/out/$(basename "$(dirname "$archive")")" && cp "$archive" "$work/out${archive#"$work/earlier"}"; }
    done
    rm -rf "$work/earlier"
done
short=short=3,processed=3,published=3,keyless=3,published-radii=4,vgg16-adversarial=4,adversarial=4,plain=12,front=4
case $which in
first)
    unpack c10
    parts=plain,adversarial,short,processed,published,keyless,published-radii,vgg16-adversarial
    divided c10 16 "speed,profile,$parts" "$parts" --adversary-steps 2 --epochs "$short" \
        --seeds plain=3,adversarial=1,short=1,published=1,keyless=1,published-radii=1,vgg16-adversarial=1
    ;;
second)  # five processes: three for CIFAR-10, one for each other set
    others=()
    (unpack c100 && run c100 16 --parts plain,adversarial --set CIFAR-100 --beside 5 --lanes 2 --adversary-steps 2 \
        --epochs plain=5,adversarial=3 --seeds plain=1,adversarial=1) &
    others+=($!)
    (unpack im64 && run im64 16 --parts plain,adversarial --set "Imagenette, 64 pixels" --batch 128 --beside 5 --lanes 2 --adversary-steps 2 \
        --epochs plain=6,adversarial=4 --seeds plain=1,adversarial=1) &
    others+=($!)
    unpack c10
    for share in 0/3 1/3 2/3; do
        run c10 16 --parts adversarial,simple,published,keyless,chosen,processed,published-radii --share $share --beside 5 --lanes 2 \
            --adversary-steps 2 --epochs "$short,simple=3,chosen=3" --seeds adversarial=1,simple=1,published=1,keyless=1,published-radii=1 --keys 1 \
            --choices "candidates(to=64)" "k(to=2); pb(to=0.7); candidates(to=64)" "pb(to=0.4); candidates(to=64)" \
            "k(to=5); pb(to=0.05)" "pb(to=0.2)" "pb(to=0.1)" &
        others+=($!)
    done
    wait "${others[@]}"
    ;;
third)  # the preset apart as the others were measured, counter-measures, networks, other sets, other choices
    others=() beside=4
    apart="--presets apart --adversary-steps 2"
    (unpack c100 && run c100 16 $apart --parts plain,adversarial --set CIFAR-100 --beside $beside --lanes 2 \
        --epochs plain=5,adversarial=3 --seeds plain=3,adversarial=1) &
    others+=($!)
    unpack c10
    parts=apart,short,vgg16,published,adversarial,processed,keyless,architectures,vgg16-adversarial,fractions
    for share in 0/2 1/2; do
        run c10 16 $apart --share $share --beside $beside --lanes 2 --parts $parts \
            --epochs "$short,apart=12,vgg16=4,architectures=4,fractions=4" --seeds vgg16=3,architectures=3,vgg16-adversarial=1 &
        others+=($!)
    done
    run c10 16 --share 0/1 --parts chosen --beside $beside --lanes 2 --keys 3 --epochs chosen=3 --choices "pb(to=0.4); candidates(to=64)" \
        "pb(to=0.3); candidates(to=64)" "k(to=2); pb(to=0.7); candidates(to=64)" "k(to=2); pb(to=0.5); candidates(to=64)" \
        "pb(to=0.2); candidates(to=64)" "pb(to=0.4)" "pb(to=0.2)" "luminance(to=true); pb(to=0.4); candidates(to=64)" &
    others+=($!)
    wait "${others[@]}"
    ;;
fourth)  # the best choices after 12 epochs with three keys, 64 pixels, the other counter-measures
    others=() how="--beside 3 --lanes 2 --adversary-steps 2"
    (unpack im64 && run im64 16 --presets apart --parts plain,adversarial --set "Imagenette, 64 pixels" --batch 128 $how \
        --epochs plain=12,adversarial=6 --seeds plain=3,adversarial=1) &
    others+=($!)
    unpack c10
    run c10 16 --share 0/1 --parts chosen $how --keys 1,2,0 --epochs chosen=12 --choices "pb(to=0.4); candidates(to=64)" \
        "pb(to=0.35); candidates(to=64)" "pb(to=0.3); candidates(to=64)" &
    others+=($!)
    run c10 16 --presets apart --share 0/2 --parts processed,keyless,adversarial $how --epochs "$short" --seeds processed=1,keyless=1 &
    others+=($!)
    run c10 16 --presets apart --share 1/2 --parts processed,keyless,adversarial $how --epochs "$short" --seeds processed=1,keyless=1
    wait "${others[@]}"
    ;;
nets)  # DenseNet-121 and WRN-34-10 on images of apart; VGG-16 against an adversary
    unpack c10
    others=() parts=architectures,vgg16-adversarial
    for share in 0/2 1/2; do
        run c10 16 --presets apart --share $share --parts $parts --beside 2 --lanes 2 --adversary-steps 2 \
            --epochs "$short,architectures=3" --seeds architectures=3,vgg16-adversarial=1 &
        others+=($!)
    done
    wait "${others[@]}"
    ;;
authors)  # the rows that the authors print, on images of apart: four networks, the other radii, parts of a set, DAT, self-supervised training
    unpack c10
    others=() parts=architectures,radii,wide-adversarial,fractions,dat,self-supervised
    for share in 0/3 1/3 2/3; do
        run c10 16 --presets apart --share $share --parts $parts --beside 3 --lanes 2 --adversary-steps 2 \
            --epochs "$short,architectures=3,radii=4,wide-adversarial=1,fractions=4,dat=3,self-supervised=20" --seeds architectures=3,radii=3,dat=3 &
        others+=($!)
    done
    wait "${others[@]}"
    ;;
seeds)  # what three seeds each still lacked after `authors`: the authors' form against every adversary, counter-measures, clean networks, 64 pixels
    others=()
    (unpack im64 && run im64 16 --presets apart --parts adversarial --set "Imagenette, 64 pixels" --batch 128 --beside 4 --lanes 2 --adversary-steps 2 \
        --epochs adversarial=6 --seeds adversarial=3) &
    others+=($!)
    unpack c10
    for share in 0/3 1/3 2/3; do
        { run c10 16 --presets apart,paper --share $share --parts adversarial,published-radii,vgg16-adversarial --beside 4 --lanes 2 --adversary-steps 2 \
            --epochs "$short" --seeds adversarial=3,published-radii=3,vgg16-adversarial=3
            run c10 16 --presets apart --share $share --parts processed,keyless,fractions,architectures,wide-adversarial,self-supervised --beside 4 --lanes 2 \
                --adversary-steps 2 --epochs "$short,architectures=3,fractions=4,wide-adversarial=1,self-supervised=20" \
                --seeds processed=3,keyless=3,fractions=3,architectures=3,wide-adversarial=3,self-supervised=3; } &
        others+=($!)
    done
    wait "${others[@]}"
    ;;
seeds-100)  # CIFAR-100 against an adversary with three seeds
    unpack c100
    run c100 16 --presets apart --parts adversarial --set CIFAR-100 --beside 1 --lanes 3 --adversary-steps 2 --epochs adversarial=3 --seeds adversarial=3
    ;;
hundred)  # 100 epochs by the authors' recipe, alone on its GPU
    unpack c10
    run c10 5 --presets apart --parts hundred --lanes 1
    ;;
verify)  # how long `warpwright verify` takes on 50,000 images, alone on its GPU
    unpack c10
    protected
    verified 5
    ;;
alone)  # `hundred`, `verify`, each alone on its GPU, and in what is left of the time what `last` does of CIFAR-10 and of 64 pixels
    unpack c10
    protected & protecting=$!
    run c10 120 --presets apart --parts hundred --lanes 1
    wait "$protecting"
    verified 5
    if [ "$(left 0)" -ge 30 ]; then
        (unpack im64 && of_imagenette) &
        run c10 5 $seeds --parts processed,keyless,fractions --beside 2
        wait $!
    fi
    ;;
last)  # what three seeds each lack on the pages, and fine-tuning, which begins with weights trained on CIFAR-100
    others=()
    (unpack c100 && run c100 5 $seeds --presets apart,paper --parts pretrained,adversarial,plain --set CIFAR-100 --beside 2 \
        --epochs pretrained=10,adversarial=3,plain=5 --seeds adversarial=3,plain=3) &
    others+=($!)
    (unpack im64 && of_imagenette) &
    others+=($!)
    unpack c10 && run c10 5 $seeds --parts processed,keyless,fine-tuning,fractions,wide-adversarial,architectures,self-supervised --beside 2 \
        --weights "$work/out/c100/pretrained.pt"
    wait "${others[@]}"
    ;;
left)  # what three seeds each lacked after `last`: 64 pixels, the authors' form on wide networks; then the search of the choices
    others=()
    (unpack im64 && of_imagenette) &
    others+=($!)
    unpack c10 && run c10 5 $seeds --presets paper --parts wide-adversarial --beside 2
    wait "${others[@]}"
    [ "$(left 0)" -lt 45 ] || run c10 10 --parts front --lanes 2 --front-seconds "$(left 30)" --epochs front=3 --seeds front=1
    ;;
front)  # the search of the method's choices as a task of the loop: its archive is kept, and another call goes on from it
    unpack c10
    run c10 10 --parts front --lanes 2 --front-seconds "$(left 30)" --epochs front=3 --seeds front=1
    ;;
chosen)
    unpack c10
    divided c10 16 chosen chosen --epochs chosen=12 --choices "${@:5}"
    ;;
rest)
    unpack c10
    parts=short,keyless,fractions,wide-adversarial,self-supervised,dat
    divided c10 16 "$parts" "$parts" --adversary-steps 2 --epochs "$short,fractions=4,wide-adversarial=1,self-supervised=20,dat=3"
    ;;
*)
    kill "$keeper"
    rm -rf "$work"
    echo "expected first, second, third, fourth, nets, authors, seeds, seeds-100, hundred, verify, alone, last, left, front, rest or chosen, saw $which" >&2
    exit 2
    ;;
esac
kill "$keeper"
keep
rm -rf "$work"
