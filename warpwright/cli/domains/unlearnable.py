"""The verbs of the unlearnable domain: key, pack, protect, recover, inspect, verify. docs/cli.md is their contract."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

import warpwright
from warpwright.cli.common import DONE, INTERRUPTED, NOT_PASSED, Arguments
from warpwright.errors import UsageError

if TYPE_CHECKING:
    from warpwright.domains.unlearnable.data.sources import Source
    from warpwright.domains.unlearnable.protect import Summary
    from warpwright.domains.unlearnable.verification.sets import Data
    from warpwright.domains.unlearnable.verification.training.side_by_side import Progress
    from warpwright.domains.unlearnable.verification.verify import Settings

_EVERY = 0.5
"""Seconds between two lines of progress on a terminal; 20 times that elsewhere."""

_TOLD_EVERY = 5.0
"""Seconds between two lines of `verify` on how far it is."""

_SHEET_PAIRS = 20

_NETS = ("small", "resnet18", "vgg16", "wrn34-10", "densenet121")
_EXPERIMENTS = ("adversarial", "architectures", "fractions", "fine-tuning", "dat", "tricks", "self-supervised", "countermeasures")
"""Names of verification/nets and verification/experiments.py, written here too so that --help need not import torch; a test compares them."""

_PROBED = 4000
"""Images that `inspect` looks at."""


def register(verbs: Any) -> None:
    """Add the verbs to the command's sub-parsers."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object; all else goes to standard error")

    def verb(name: str, function: Callable[[Arguments], int], under: Any = verbs) -> argparse.ArgumentParser:
        about = (function.__doc__ or "").strip()
        parser: argparse.ArgumentParser = under.add_parser(name, parents=[common], help=about, description=about)
        parser.set_defaults(verb_function=function)
        return parser

    keys = verbs.add_parser("key", help="Make a key for protect.", description="Make a key for protect.")
    parser = verb("new", key_new, keys.add_subparsers(dest="key_verb", required=True, metavar="{new}"))
    parser.add_argument("--out", required=True, metavar="FILE", help="new file for the key, readable by its owner alone")
    parser = verb("pack", pack)
    parser.add_argument("source", metavar="IN", help="folder of classes, or another form that protect reads")
    parser.add_argument("out", metavar="OUT", help="new file, ending in .pack")
    parser.add_argument("--pixels", action="store_true", help="store decoded images, all of one shape: larger, and nothing is left to decode")
    _labels_option(parser)
    _protect_options(verb("protect", protect))
    _recover_options(verb("recover", recover))
    parser = verb("inspect", inspect)
    parser.add_argument("protected", metavar="PROTECTED", help="the data set")
    _labels_option(parser)
    _verify_options(verb("verify", verify))


def _labels_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", default="auto", metavar="HOW", help="folders, a CSV of file,label lines, hf:COLUMN (%(default)s: what is there)")


def _key_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", required=True, metavar="FILE", help="key file of `warpwright key new`")


def _protect_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="folder of classes, .pack, CIFAR batches, Tiny-ImageNet zip, .npz, or a folder with images.npy")
    parser.add_argument("out", metavar="OUT", help="new folder for the protected data set")
    _key_option(parser)
    _labels_option(parser)
    parser.add_argument("--preset", choices=("gentle", "apart", "paper", "recoverable"), default="apart", help="form of the method (%(default)s)")
    parser.add_argument("--k", type=int, help="filter side in pixels (3; 9 suits 224-pixel images)")
    parser.add_argument("--pb", type=float, help="blur parameter p_b (of apart 0.4, of the others 0.3; 0.06 suits --k 9)")
    parser.add_argument("--data-set", default="", metavar="NAME", help="data sets of different names get different filters from one key")
    parser.add_argument("--backend", choices=("auto", "cpp", "torch", "cuda", "numpy"), default="auto", help="what convolves (%(default)s)")
    parser.add_argument("--format", default="png", metavar="FORM", help="png, webp (lossless) or jpeg:QUALITY, for image files (%(default)s)")
    parser.add_argument("--metadata", choices=("strip", "icc", "keep"), default="icc", help="what files keep: only the colour profile (%(default)s)")
    parser.add_argument("--manifest", metavar="FILE", help="private file that recover needs (OUT.manifest.jsonl)")
    parser.add_argument("--preview", metavar="FILE", help="write a contact sheet of clean and protected images (.png) first")
    parser.add_argument("--workers", type=int, default=2, help="threads that decode and encode (%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="read and convolve everything, write nothing but the preview")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")


def _recover_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("protected", metavar="PROTECTED", help="folder that protect wrote")
    parser.add_argument("out", metavar="OUT", help="new folder for the recovered data set")
    _key_option(parser)
    parser.add_argument("--manifest", metavar="FILE", help="what protect wrote (PROTECTED.manifest.jsonl)")
    parser.add_argument("--best-effort", action="store_true", help="also recover from lossy or changed files, less well")
    parser.add_argument("--workers", type=int, default=2, help="threads that decode and encode (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")


def _verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clean", metavar="CLEAN", help="the data set before")
    parser.add_argument("protected", metavar="PROTECTED", help="the data set after")
    _labels_option(parser)
    tests = parser.add_mutually_exclusive_group()
    tests.add_argument("--test", metavar="DIR", help="clean data set to test on")
    tests.add_argument("--holdout", type=float, default=0.2, metavar="SHARE", help="share of the clean images to test on instead (%(default)s)")
    parser.add_argument("--attacks", default="quick", metavar="WHICH", help="none, quick, full, or names with commas (%(default)s)")
    parser.add_argument("--experiments", default="", metavar="NAMES", help=f"what else to train, with commas: {', '.join(_EXPERIMENTS)}")
    parser.add_argument("--net", choices=_NETS, default="small", help="what is trained (%(default)s)")
    parser.add_argument("--weights", metavar="FILE", help="state dictionary of a pre-trained net, for the experiment fine-tuning")
    parser.add_argument("--epochs", type=int, default=20, help="of each training (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each kind (%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="images a step (%(default)s)")
    parser.add_argument("--crop", type=int, default=2, help="pixels of padding before a random crop (%(default)s; 4 is usual for photographs)")
    parser.add_argument("--flip", action="store_true", help="mirror images at random, as is usual for photographs")
    parser.add_argument("--schedule", choices=("one-cycle", "steps"), default="one-cycle", help="of the learning rate (%(default)s; paper: steps)")
    parser.add_argument("--clip", type=float, default=0.0, metavar="NORM", help="largest norm of the gradients (no limit; the paper: 5)")
    parser.add_argument("--steps", type=int, default=5, help="of an adversary (%(default)s; the paper: 10)")
    parser.add_argument("--side", type=int, default=32, help="larger images are shrunk to this many pixels for training (%(default)s)")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="use at most N images (all)")
    parser.add_argument("--device", default="cpu", help="where to train: cpu, cuda, cuda:1 (%(default)s)")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16"), default="auto", help="of products (auto: bfloat16 on a GPU)")
    parser.add_argument("--stepping", choices=("auto", "eager", "graph", "compiled"), default="auto", help="how steps reach a GPU (auto: graphs)")
    parser.add_argument("--lanes", type=int, default=1, metavar="N", help="trainings side by side on the device (%(default)s)")
    parser.add_argument("--store", metavar="FILE", help="keep finished trainings there, and go on from them after a stop")
    parser.add_argument("--report", metavar="FILE", help="write the page (.html) or the object (.json)")


# --- the verbs ------------------------------------------------------------------------------------------------------------------------


def key_new(args: Arguments) -> int:
    """Make a key file of 256 random bits and print its fingerprint."""
    from warpwright.domains.unlearnable.cwc.keys import new_key

    mark = new_key(Path(args.out))
    _tell(args, {"key": args.out, "fingerprint": mark}, f"wrote {args.out}, fingerprint {mark}: keep it private, it cannot be made again")
    return DONE


def pack(args: Arguments) -> int:
    """Put an image data set into one file that opens at once and that the other verbs read."""
    from warpwright.domains.unlearnable.data import packs
    from warpwright.domains.unlearnable.data.packing import pack_data_set
    from warpwright.domains.unlearnable.data.sources import open_source

    out = Path(args.out)
    if out.suffix != packs.SUFFIX:
        raise UsageError(f"expected a name that ends in {packs.SUFFIX}, saw {out}", f"write {out.with_suffix(packs.SUFFIX)}")
    source = open_source(Path(args.source), args.labels)
    if source.note:
        _say(args, source.note)
    started = time.monotonic()
    done = pack_data_set(source, out, args.pixels)
    seconds = time.monotonic() - started
    for line in done.refused:
        _say(args, f"left out: {line}")
    counts = {"images": done.images, "classes": len(source.classes), "failed": list(done.refused), "bytes": out.stat().st_size, "sha256": done.sha256}
    text = f"{done.images:,} images of {len(source.classes)} classes in {out} ({out.stat().st_size:,} bytes, {seconds:.1f} s)"
    _tell(args, {"out": str(out), **counts, "seconds": seconds}, text)
    return NOT_PASSED if done.refused else DONE


def protect(args: Arguments) -> int:
    """Convolve every class of an image data set with its own keyed filter."""
    from warpwright.domains.unlearnable.data.sources import open_source
    from warpwright.domains.unlearnable.protect import Options, protect_data_set

    key = _key(args.key)
    source = open_source(Path(args.source), args.labels)
    options = Options(
        preset=args.preset,
        k=args.k,
        pb=args.pb,
        dataset=args.data_set,
        form=_format(args.format, args.metadata),
        backend=args.backend,
        workers=_positive(args.workers, "--workers"),
        resume=args.resume,
        dry_run=args.dry_run,
        version=warpwright.__version__,
    )
    bank = options.bank(key, source.classes)
    if source.note:
        _say(args, source.note)
    if options.chosen.warning:
        _say(args, f"preset {options.preset}: {options.chosen.warning}")
    if args.preview:
        _preview(Path(args.preview), source, key, options)
    out, manifest = Path(args.out), _manifest_path(args.manifest, args.out)
    run = _Run(args, source.size)
    with run:
        run.summary = protect_data_set(source, out, key, options, None if options.dry_run else manifest, run.show)
    facts = {"preset": options.preset, "k": options.spec.k, "pb": options.spec.pb, "fingerprint": bank.fingerprint, "classes": len(source.classes)}
    return run.ended({"out": None if options.dry_run else str(out), "manifest": None if options.dry_run else str(manifest), **facts})


def recover(args: Arguments) -> int:
    """Undo protect with the key and the private manifest."""
    from warpwright.domains.unlearnable.recover import read_manifest, recover_data_set

    key = _key(args.key)
    manifest = read_manifest(_manifest_path(args.manifest, args.protected))
    protected, out = Path(args.protected), Path(args.out)
    if not protected.is_dir():
        raise UsageError(f"expected the folder that protect wrote, saw none at {protected}", "check the path")
    if manifest.options.preset != "recoverable":
        _say(args, f"preset {manifest.options.preset}: recovered images are approximate; only preset recoverable was made to be undone")
    run = _Run(args, None)
    with run:
        workers = _positive(args.workers, "--workers")
        run.summary = recover_data_set(protected, out, key, manifest, args.best_effort, workers, args.resume, run.show)
    return run.ended({"out": str(out), "preset": manifest.options.preset, "fingerprint": manifest.fingerprint})


def inspect(args: Arguments) -> int:
    """Look without the key: does the border or the spectrum of an image name its class?"""
    from warpwright.domains.unlearnable.data.labelled import load_labelled
    from warpwright.domains.unlearnable.verification import probe

    data = load_labelled(Path(args.protected), args.labels, _PROBED)
    images, labels = data.at_side(max(data.common_side(), 8)), data.labels
    probes = {"border": probe.border_probe(images, labels), "spectrum": probe.spectrum_probe(images, labels)}
    summary = {name: {"accuracy": one.accuracy, "chance": one.chance, "error": one.error, "leaks": one.leaks} for name, one in probes.items()}
    lines = [
        f"{name:<9}{one.accuracy:5.1f} % of held-out images (chance {one.chance:.1f} %, standard error {one.error:.1f}): "
        f"{'names the class' if one.leaks else 'not above chance'}"
        for name, one in probes.items()
    ]
    judgement = {
        (True, True): "borders and spectra differ by class: cropping the edge may undo part of it, and the filters can be estimated from labels "
        "and similar clean images",
        (True, False): "borders differ by class: cropping the edge may undo the protection",
        (False, True): "spectra differ by class: with labels and similar clean images the filters can be estimated (a clean set's classes may "
        "differ in this too)",
        (False, False): "no class-wise filter shows in borders or coarse spectra",
    }[probes["border"].leaks, probes["spectrum"].leaks]
    _tell(args, {"images": len(labels), "classes": len(data.classes), **summary, "judgement": judgement}, "\n".join([*lines, judgement]))
    return DONE


def verify(args: Arguments) -> int:
    """Train on clean, protected and control sets, then attack: how far does the protection go?"""
    from warpwright.domains.unlearnable.verification import verify as verification
    from warpwright.domains.unlearnable.verification.store import OutcomeStore
    from warpwright.reports import page_unlearnable

    form = _report_form(args.report)
    settings = _verify_settings(args)
    data = verification.load(Path(args.clean), Path(args.protected), args.labels, args.test, args.holdout, args.side, args.limit)
    started, told = time.monotonic(), 0.0

    def show(done: int, count: int, name: str) -> None:
        _say(args, f"{time.monotonic() - started:6.0f} s  {done} of {count} trainings  {name}")

    def watch(progress: Progress) -> None:
        nonlocal told
        if progress.seconds - told >= _TOLD_EVERY:
            told = progress.seconds
            _say(args, f"{progress.seconds:6.0f} s  {progress.text}")

    store = OutcomeStore(Path(args.store), _about(args, settings, data)) if args.store else None
    result = verification.verify(data, settings, show, store, store.parts if store else None, watch)
    if form == "html":
        Path(args.report).write_text(page_unlearnable.page(result, data.samples()))
    elif form == "json":
        Path(args.report).write_text(json.dumps(result.to_json(), indent=1) + "\n")
    _tell(args, result.to_json(), result.text())
    if args.report:
        _say(args, f"wrote {args.report}")
    return DONE if result.headline.valid else NOT_PASSED


def _verify_settings(args: Arguments) -> Settings:
    from warpwright.domains.unlearnable.verification.verify import Settings

    if not re.fullmatch(r"cpu|cuda(:\d+)?", args.device):
        raise UsageError(f"expected --device cpu, cuda or cuda:N, saw {args.device!r}", "write --device cuda")
    if args.device != "cpu":
        import torch

        if not torch.cuda.is_available():
            raise UsageError(f"expected an NVIDIA GPU for --device {args.device}, saw none", "use --device cpu")
    return Settings(
        net=args.net,
        epochs=_positive(args.epochs, "--epochs"),
        seeds=_positive(args.seeds, "--seeds"),
        attacks=args.attacks,
        batch=_positive(args.batch, "--batch"),
        crop=args.crop,
        device=args.device,
        flip=args.flip,
        schedule=args.schedule,
        clip=args.clip,
        steps=_positive(args.steps, "--steps"),
        precision=args.precision,
        stepping=args.stepping,
        experiments=tuple(filter(None, args.experiments.split(","))),
        weights=Path(args.weights) if args.weights else None,
        lanes=_positive(args.lanes, "--lanes"),
    )


def _about(args: Arguments, settings: Settings, data: Data) -> str:
    """Return what finished trainings belong to: another set or recipe must not answer with them. The attacks are in their own keys."""
    import dataclasses

    recipe = {name: value for name, value in dataclasses.asdict(settings.recipe).items() if name not in ("device", "stepping")}
    return json.dumps({"recipe": recipe, "data": data.fingerprint(), "weights": args.weights})


# --- steps ----------------------------------------------------------------------------------------------------------------------------


class _Run:
    """Shows the progress of a long verb, and says at its end what was done, also when it was interrupted."""

    def __init__(self, args: Arguments, size: int | None) -> None:
        self.args, self.size = args, size
        self.summary: Summary | None = None
        self.interrupted = False
        self._next = 0.0
        self._every = _EVERY if sys.stderr.isatty() else 20 * _EVERY

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.interrupted = kind is KeyboardInterrupt
        return self.interrupted

    def show(self, summary: Summary) -> None:
        """Print how far it is, now and then."""
        self.summary = summary
        if summary.seconds >= self._next:
            self._next = summary.seconds + self._every
            of = "" if self.size is None else f" of {self.size:,}"
            rate = summary.written / summary.seconds if summary.seconds else 0.0
            _say(self.args, f"{summary.present + summary.written:,}{of} images, {rate:,.0f} images/s")

    def ended(self, facts: Mapping[str, Any]) -> int:
        """Print the summary and return the exit code."""
        summary = self.summary
        written, present, seconds, failed = (summary.written, summary.present, summary.seconds, summary.failed) if summary else (0, 0, 0.0, [])
        for line in failed:
            _say(self.args, f"not done: {line}")
        rate = written / seconds if seconds else 0.0
        complete = not self.interrupted and not failed
        counts = {"written": written, "present": present, "failed": failed, "complete": complete}
        document = {**facts, **counts, "seconds": seconds, "images_per_second": rate}
        text = f"{written:,} images in {seconds:.1f} s ({rate:,.0f} images/s), {present:,} were there, {len(failed):,} not done"
        _tell(self.args, document, text)
        if self.interrupted:
            _say(self.args, "interrupted: --resume goes on")
            return INTERRUPTED
        return NOT_PASSED if failed else DONE


def _key(path: str) -> bytes:
    """Return the key in a file; a key given in place of a path is not repeated in the error."""
    from warpwright.domains.unlearnable.cwc.keys import read_key

    if re.search(r"[0-9a-fA-F]{32,}", path) and not Path(path).exists():
        raise UsageError("expected the path of a key file for --key, saw what looks like a key itself", "others may have seen it: make a new one")
    return read_key(Path(path))


def _format(text: str, metadata: Any) -> Any:
    from warpwright.domains.unlearnable.data.images import Format

    match = re.fullmatch(r"(png|webp)|jpeg(?::(\d+))?", text)
    quality = int(match[2] or 95) if match else 0
    if match is None or not 1 <= quality <= 100:
        raise UsageError(f"expected --format png, webp or jpeg:QUALITY with a quality from 1 to 100, saw {text!r}", "write --format jpeg:95")
    return Format("jpeg" if match[1] is None else match[1], quality, metadata)  # type: ignore[arg-type]


def _positive(number: int, option: str) -> int:
    if number < 1:
        raise UsageError(f"expected a whole number above 0 for {option}, saw {number}", f"write {option} 1 or more")
    return number


def _manifest_path(file: str | None, folder: str) -> Path:
    path = Path(folder)
    return Path(file) if file else path.with_name(f"{path.name}.manifest.jsonl")


def _report_form(report: str | None) -> str:
    form = Path(report).suffix.lstrip(".") if report else ""
    if form not in ("", "html", "json"):
        raise UsageError(f"expected a --report ending in .html or .json, saw {report}", "name it report.html")
    return form


def _preview(path: Path, source: Source, key: bytes, options: Any) -> None:
    """Write the contact sheet: the first readable images of the classes in turn."""
    import numpy as np

    from warpwright.domains.unlearnable.cwc import backends
    from warpwright.domains.unlearnable.data.contact import contact_sheet
    from warpwright.domains.unlearnable.data.sinks import write_whole

    bank = options.bank(key, source.classes)
    pairs = []
    for label, image in _first_of_classes(source):
        protected = backends.protect(image[None], np.array([label]), bank, options.chosen.operator, options.backend)[0]
        pairs.append((image, protected))
    try:
        write_whole(path, contact_sheet(pairs))
    except OSError as error:
        raise UsageError(f"cannot write the preview {path}: {error.strerror}", "check the path") from error


def _first_of_classes(source: Source) -> Iterator[tuple[int, Any]]:
    from warpwright.errors import ImageError

    each = max(1, _SHEET_PAIRS // max(len(source.classes), 1))
    left = dict.fromkeys(range(min(len(source.classes), _SHEET_PAIRS)), each)
    for item in source.items():
        if not left:
            return
        if item.label not in left:
            continue
        try:
            image = item.load().colour
        except ImageError:
            continue  # the run itself reports it
        yield item.label, image
        left[item.label] -= 1
        if not left[item.label]:
            del left[item.label]


def _say(args: Arguments, text: str) -> None:
    args.console.print(Text(text))


def _tell(args: Arguments, document: Mapping[str, Any], text: str) -> None:
    print(json.dumps(document, allow_nan=False) if args.json else text, file=args.stdout, flush=True)
