"""Image files to uint8 arrays and back, with every decision about formats in one place.

Handled: grey and RGB of 8 bits; alpha (the alpha plane is kept, colour is filtered); palettes (expanded); 1-bit (expanded to grey);
EXIF orientation (applied, since the tag is stripped). Refused by name, one line each: 16-bit and float samples, CMYK and other colour
spaces, animations, empty files, files that do not decode completely.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import ImageError, MissingExtra

if TYPE_CHECKING:
    from PIL import Image

Metadata = Literal["strip", "icc", "keep"]
"""`icc` keeps the colour profile only: EXIF may hold GPS positions, so it is dropped unless the user asks for `keep`."""

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})
_EXPAND = {"1": "L", "P": "RGB", "PA": "RGBA"}
_PLANES = {"L": 1, "LA": 1, "RGB": 3, "RGBA": 3}
"""Modes that are filtered, and how many of their planes hold colour."""


@dataclass(frozen=True)
class Picture:
    """One decoded image: `colour` `[C, H, W]` uint8 with C 1 or 3, `alpha` `[H, W]` or None, and what to carry over."""

    colour: NDArray[np.uint8]
    alpha: NDArray[np.uint8] | None = None
    icc: bytes | None = None
    exif: bytes | None = None


@dataclass(frozen=True)
class Format:
    """How output files are written. Lossless by default: recovery with the key needs the exact bytes."""

    name: Literal["png", "webp", "jpeg"] = "png"
    quality: int = 95
    """Of jpeg; webp is written lossless."""
    metadata: Metadata = "icc"

    @property
    def suffix(self) -> str:
        """The file name's ending."""
        return {"png": ".png", "webp": ".webp", "jpeg": ".jpg"}[self.name]

    @property
    def lossless(self) -> bool:
        """Can the images be recovered from these files?"""
        return self.name != "jpeg"


def pillow() -> Any:
    """Return PIL.Image; MissingExtra when Pillow is absent."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("pillow", "images", "reading and writing image files") from error
    return Image


def decode(data: bytes, name: str) -> Picture:
    """Return the picture in `data`; ImageError, naming the file, for whatever cannot be protected."""
    image_module = pillow()
    if not data:
        raise ImageError(f"{name}: expected an image, saw an empty file")
    try:
        with image_module.open(io.BytesIO(data)) as image:
            _refuse(image, name)
            image.load()
            return _picture(image)
    except ImageError:
        raise
    except Exception as error:  # Pillow's decoders raise OSError, ValueError, SyntaxError, struct.error, EOFError ... by format
        raise ImageError(f"{name}: expected a whole image, saw {type(error).__name__}: {error}", "replace or leave out this file") from error


def _refuse(image: Image.Image, name: str) -> None:
    if getattr(image, "n_frames", 1) > 1:
        raise ImageError(f"{name}: expected one frame, saw {image.n_frames}", "split the animation")  # type: ignore[attr-defined]
    if image.mode not in _PLANES and image.mode not in _EXPAND:
        raise ImageError(f"{name}: expected 8-bit grey or RGB, saw mode {image.mode}", "convert it to 8-bit RGB")
    if 0 in image.size:
        raise ImageError(f"{name}: expected pixels, saw {image.size[0]} x {image.size[1]}", "leave out this file")


def _picture(image: Image.Image) -> Picture:
    from PIL import ImageOps

    icc = image.info.get("icc_profile")
    if image.format == "JPEG" and not {"exif", "xmp"} & image.info.keys() and image.mode in ("L", "RGB"):
        return _planes(image, icc, None)  # of small images, looking for tags that are not there is a third of the time
    orientation = image.getexif().get(0x0112, 1)
    upright: Image.Image = ImageOps.exif_transpose(image) if orientation != 1 else image
    exif = upright.getexif().tobytes() if upright.getexif() else None
    if upright.mode in _EXPAND:
        upright = upright.convert("RGBA" if "transparency" in upright.info else _EXPAND[upright.mode])
    return _planes(upright, icc, exif)


def _planes(image: Image.Image, icc: bytes | None, exif: bytes | None) -> Picture:
    planes = np.asarray(image).reshape(image.size[1], image.size[0], -1).transpose(2, 0, 1)
    colours = _PLANES[image.mode]
    alpha = planes[colours].copy() if len(planes) > colours else None
    return Picture(np.ascontiguousarray(planes[:colours]), alpha, icc, exif)


def encode(picture: Picture, form: Format) -> bytes:
    """Return the file's bytes: the same picture and format give the same bytes with the same Pillow."""
    image_module = pillow()
    planes = list(picture.colour) if picture.alpha is None or form.name == "jpeg" else [*picture.colour, picture.alpha]
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[len(planes)]
    image = image_module.fromarray(np.stack(planes, -1) if len(planes) > 1 else planes[0], mode)
    options: dict[str, Any] = {
        "png": {"compress_level": 1},  # 3 times as fast as the default of 6 and 10 % larger; PNG encoding limits a run over folders
        "webp": {"lossless": True, "method": 2, "exact": True},
        "jpeg": {"quality": form.quality, "subsampling": 0},
    }[form.name]
    if form.metadata in ("icc", "keep") and picture.icc:
        options["icc_profile"] = picture.icc
    if form.metadata == "keep" and picture.exif:
        options["exif"] = picture.exif
    out = io.BytesIO()
    image.save(out, form.name.upper(), **options)
    return out.getvalue()


def read(path: Path, name: str) -> Picture:
    """Return the picture in a file."""
    return decode(raw(path, name), name)


def raw(path: Path, name: str) -> bytes:
    """Return a file's bytes."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ImageError(f"{name}: cannot be read: {error.strerror}", "check the file") from error
