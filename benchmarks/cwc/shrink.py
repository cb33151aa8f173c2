"""Shrink a folder of images, one folder a class, so that the set can travel: the centre square, at one side, as JPEG.

    python -m benchmarks.cwc.shrink IN OUT --side 64 --quality 90

This changes the data (scaled and compressed once more), which whoever quotes figures has to say.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

SUFFIXES = (".jpg", ".jpeg", ".png")


def shrink(source: Path, target: Path, side: int, quality: int) -> None:
    """Write one image's centre square."""
    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    width, height = picture.size
    least = min(width, height)
    left, top = (width - least) // 2, (height - least) // 2
    square = picture.resize((side, side), Image.Resampling.BICUBIC, (left, top, left + least, top + least))
    target.parent.mkdir(parents=True, exist_ok=True)
    square.save(target.with_suffix(".jpg"), "JPEG", quality=quality)


def main(arguments: Sequence[str] | None = None) -> int:
    """Shrink a folder."""
    options = parser().parse_args(arguments)
    sources = sorted(path for path in options.source.rglob("*") if path.suffix.lower() in SUFFIXES)
    for source in sources:
        shrink(source, options.target / source.relative_to(options.source), options.side, options.quality)
    print(f"{len(sources):,} images of side {options.side} in {options.target}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("source", type=Path, metavar="IN")
    made.add_argument("target", type=Path, metavar="OUT")
    made.add_argument("--side", type=int, default=64, help="pixels (%(default)s)")
    made.add_argument("--quality", type=int, default=90, help="of JPEG (%(default)s)")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
