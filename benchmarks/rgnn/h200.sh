#!/bin/bash
# Short runs of the relational layers' benchmarks on a GPU, each with a limit of its own; rows are written as they are found.
#
#   bash benchmarks/rgnn/h200.sh attend|small|large|warm|unrun|wide|outside OUT [PACKAGES] [SCRIPTS] [MODELS]
#
# attend  HGT on am, mag, wikikg2, biokg, with attention in one kernel and without; am's step recorded, and by kernels  90 s, alone on its GPU
# small   all layers on aifb, mutag, bgs, fb15k, beside torch.pairs and PyG; steps recorded whole                      100 s, alone
# large   RGCN and RGAT on am, mag, wikikg2, beside torch.pairs and with weight gradients on a second stream            60 s, alone
# warm    what unrun compiles, which Triton keeps; untimed, beside wide on the same card, or beside anything else       60 s, untimed
# unrun   sampled batches, adversarial graphs, 1e4 to 1e8 edges, without reordering and compaction                      80 s after warm, alone
# wide    d = 256 on all eight graphs: peaks of memory                                                                  70 s, untimed
# outside published training scripts and models, as they are and accelerated; compiled first, side by side               90 s, alone from its 35th on
# kept    whether what is kept between calls is told apart                                                             20 s, untimed
#
# PACKAGES is a folder with torch_geometric, where it is not installed; SCRIPTS its folder examples, MODELS files of public repositories. DRY=1: tiny graphs on the CPU.
set -u
which=$1 out=$2 packages=${3:-} scripts=${4:-} models=${5:-}
dry=${DRY:+--dry}
[ -z "$packages" ] || export PYTHONPATH=$packages${PYTHONPATH:+:$PYTHONPATH}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}  # processes side by side would wait for one another
mkdir -p "$out"

# part NAME SECONDS MODULE ...: a module's rows in a folder of their own; it is ended after so many seconds
part() {
    name=$1 limit=$2 module=$3
    shift 3
    mkdir -p "$out/$name"
    timeout -k 3 "$limit" python3 -u -m "benchmarks.rgnn.$module" --out "$out/$name" $dry "$@" >"$out/$name/log.txt" 2>&1
    echo "$name: exit $?, $SECONDS s, $(cat "$out/$name"/*.jsonl 2>/dev/null | wc -l) rows"
}

case $which in
attend)
    part attend 62 together --graphs am,mag,wikikg2,biokg --models hgt --prepare 38 --seconds 56 --parts times,variants
    part steps 24 steps --graphs am --models hgt --attend --seconds 14
    part profile 24 breakdown --parts profile
    ;;
small)
    part small 72 together --graphs aifb,mutag,bgs,fb15k --prepare 32 --seconds 64
    part steps 30 steps --seconds 20
    ;;
large)
    part large 60 together --graphs mag,am,wikikg2 --models rgcn,rgat --prepare 32 --seconds 54 --parts times,variants
    ;;
warm)
    effects="--variants --no-check --own rgcn,rgat,hgt --each 0 --seconds 50"
    part growth-compiled 60 growth --warm --seconds 55 &
    part batches-compiled 60 batches --seconds 50 &
    for graph in fb15k biokg am; do
        part "effects-compiled-$graph" 60 forward_training --graphs "$graph" --only "^no (reo|com)|torch emitter" $effects &
    done
    wait
    ;;
unrun)
    part batches 30 batches --seconds 26
    part growth 28 growth --seconds 22
    part effects 28 forward_training --graphs fb15k,biokg,am --variants --only "^no (reo|com)|torch emitter" --own rgcn,rgat,hgt --no-check --each 0.03 --seconds 22
    ;;
wide)
    for graphs in wikikg2 mag am,biokg fb15k,bgs,mutag,aifb; do
        part "wide-$graphs" 70 forward_training --graphs "$graphs" --dim 256 --own rgcn,rgat,hgt --no-check --each 0 --seconds 55 &
    done
    wait
    ;;
outside)
    latest=adr_hgt,effects_hgt,graph_rgcn,state_rgat,grid_rgcn
    gpu=--gpu
    [ -z "$dry" ] || gpu=
    for model in ${latest//,/ }; do
        part "foreign-compiled-$model" 35 foreign $gpu --models "$models" --only "$model" --steps 2 &
    done
    for script in rgcn.py rgat.py hgt_dblp.py rgcn_link_pred.py; do
        part "outside-compiled-$script" 35 outside --scripts "$scripts" --only "$script" --epochs 2 &
    done
    wait
    part foreign 30 foreign $gpu --models "$models" --only "$latest" --steps 30
    part outside 40 outside --scripts "$scripts" --epochs 8
    ;;
kept)
    part kept 30 kept
    ;;
*)
    echo "expected attend, small, large, warm, unrun, wide, outside or kept, saw $which" >&2 && exit 2
    ;;
esac
