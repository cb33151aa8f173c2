"""Published training scripts, as they are and with `accelerate` as the only change: the losses of both, and the time of a step.

    git clone https://github.com/pyg-team/pytorch_geometric FOLDER/pyg
    python -m benchmarks.rgnn.outside --scripts FOLDER/pyg/examples --data DATA --out OUT [--pyg FOLDER with torch_geometric]

DATA may have `aifb.pt`, an int64 [2, edges] of (node, relation * 8284 + node) as torch-rgcn publishes AIFB's graph, and `fb15k-237/train2id.txt`,
`valid2id.txt`, `test2id.txt` as OpenKE publishes them. What is missing is drawn with the data set's counts, and so are AIFB's labels and DBLP, whose
files need a network; the rows say so. Epochs are cut to --epochs, and the link prediction's width to 50, since PyG needs 14 GB at 500.
"""

from __future__ import annotations

import argparse
import io
import itertools
import re
import statistics
import sys
import time
import types
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.noted import note_of, rows_file
from warpwright.domains.rgnn import loaders, synth

AIFB_NODES = 8284


@dataclass(frozen=True)
class Script:
    """A published script, its arguments, and what is cut so that it ends."""

    path: str
    arguments: tuple[str, ...] = ()
    cuts: tuple[tuple[str, str], ...] = ()


SCRIPTS = (
    Script("rgcn.py", ("--dataset", "AIFB")),
    Script("rgcn.py", ("--dataset", "BGS")),
    Script("rgat.py"),
    Script("hetero/hgt_dblp.py"),
    Script("rgcn_link_pred.py", (), (("data.num_nodes, 500,", "data.num_nodes, 50,"), ("// 2, 500)", "// 2, 50)"))),
)


def aifb(folder: Path) -> tuple[Any, str]:
    """Return a data object with AIFB's graph, and where it is from."""
    from torch_geometric.data import Data

    if (folder / "aifb.pt").exists():
        nodes, columns = torch.load(folder / "aifb.pt", weights_only=True)
        edge_index, edge_type = torch.stack([columns % AIFB_NODES, nodes]), columns // AIFB_NODES
        source, count = "the graph, drawn labels", AIFB_NODES
    else:
        graph = synth.synthetic("aifb")
        edge_index, edge_type, source, count = graph.edge_index, graph.edge_type, "drawn with its counts", graph.count
    random = torch.Generator().manual_seed(0)
    chosen = torch.randperm(count, generator=random)[:176]
    labels = torch.randint(4, (176,), generator=random)
    data = Data(edge_index=edge_index, edge_type=edge_type, num_nodes=count, train_idx=chosen[:140], train_y=labels[:140])
    data.test_idx, data.test_y = chosen[140:], labels[140:]
    return data, source


def dblp() -> Any:
    """Return HeteroData with DBLP's counts: nodes, widths and edges are its own, ends and labels are drawn."""
    from torch_geometric.data import HeteroData

    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    counts = {"author": 4057, "paper": 14328, "term": 7723, "conference": 20}
    for kind, width in (("author", 334), ("paper", 4231), ("term", 50), ("conference", 1)):
        data[kind].x = (torch.rand(counts[kind], width, generator=random) < 0.02).float() if width > 1 else torch.ones(20, 1)
    for source, target, edges in (("author", "paper", 19645), ("paper", "term", 85810), ("paper", "conference", 14328)):
        ends = torch.stack([torch.randint(counts[source], (edges,), generator=random), torch.randint(counts[target], (edges,), generator=random)])
        data[source, "to", target].edge_index = ends
        data[target, "to", source].edge_index = ends.flip(0)
    data["author"].y = torch.randint(4, (4057,), generator=random)
    place = torch.rand(4057, generator=random)
    data["author"].train_mask, data["author"].val_mask, data["author"].test_mask = place < 0.1, (place >= 0.1) & (place < 0.2), place >= 0.2
    return data


def fb15k(folder: Path) -> tuple[Any, str]:
    """Return what RelLinkPredDataset gives for FB15k-237, and where it is from."""
    from torch_geometric.data import Data

    if (folder / "fb15k-237" / "train2id.txt").exists():
        files = [loaders.triples(folder / "fb15k-237" / f"{name}2id.txt") for name in ("train", "valid", "test")]
        parts, source = [torch.cat([g.edge_index, g.edge_type[None]]) for g in files], "the data"
    else:
        graph = synth.synthetic("fb15k")
        drawn = torch.cat([graph.edge_index, graph.edge_type[None] % 237])[:, torch.randperm(620232)[:310116]]
        parts, source = list(drawn.split([272115, 17535, 20466], 1)), "drawn with its counts"
    data = Data(num_nodes=14541)
    ends, kinds = parts[0][:2], parts[0][2]
    data.edge_index, data.edge_type = torch.cat([ends, ends.flip(0)], 1), torch.cat([kinds, kinds + 237])
    for name, part in zip(("train", "valid", "test"), parts, strict=True):
        data[f"{name}_edge_index"], data[f"{name}_edge_type"] = part[:2], part[2]
    return data, source


class Given:
    """A data set in place of PyG's class that would download it."""

    def __init__(self, data: Any, relations: int = 0, classes: int = 4) -> None:
        self.data, self.num_relations, self.num_classes = data, relations, classes

    def __call__(self, *args: Any, **kwargs: Any) -> Given:
        return self

    def __getitem__(self, number: int) -> Any:
        return self.data.clone()


def datasets(folder: Path) -> tuple[dict[str, Given], dict[str, str]]:
    """Return the data sets by the names that scripts import, and where each is from."""
    small, of_aifb = aifb(folder)
    large, of_fb = fb15k(folder)
    found = {"Entities": Given(small, int(small.edge_type.max()) + 1), "DBLP": Given(dblp()), "RelLinkPredDataset": Given(large, 474)}
    return found, {"Entities": of_aifb, "DBLP": "drawn with its counts", "RelLinkPredDataset": of_fb}


def run(text: str, path: Path, script: Script, accelerated: bool, epochs: int) -> tuple[list[float], list[float], float]:
    """Return the losses that the script prints, the seconds between its prints (on a CPU of processor time), and a GPU's peak in MB."""
    torch.manual_seed(0)
    on_gpu, before = torch.cuda.is_available(), 0
    now = time.perf_counter if on_gpu else time.thread_time
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    for old, new in (*script.cuts, *((f"range(1, {n})", f"range(1, {epochs + 1})") for n in (51, 101, 10001))):
        text = text.replace(old, new)
    if accelerated:
        text = re.sub(r"^optimizer =", "import warpwright.rgnn\nwarpwright.rgnn.accelerate(model)\noptimizer =", text, count=1, flags=re.M)
    arguments, sys.argv = sys.argv, [str(path), *script.arguments]
    times: list[float] = []

    class Printed(io.StringIO):
        def write(self, line: str) -> int:
            if "Epoch" in line:
                times.append(now())
            return super().write(line)

    out = Printed()
    try:
        with redirect_stdout(out):
            exec(compile(text, str(path), "exec"), {"__file__": str(path.resolve()), "__name__": "__main__"})
    finally:
        sys.argv = arguments
    losses = [float(found) for found in re.findall(r"Loss: ([-\d.naif]+)", out.getvalue())]
    peak = (torch.cuda.max_memory_allocated() - before) / 1e6 if on_gpu else 0.0
    return losses, [later - earlier for earlier, later in itertools.pairwise(times)], peak


def row_of(script: Script, folder: Path, sources: dict[str, str], epochs: int) -> dict[str, Any]:
    """Run a script both ways."""
    path = folder / script.path
    text = path.read_text()
    source = next(value for name, value in sources.items() if name in text)
    (plain, plain_times, mb), (ours, our_times, our_mb) = (run(text, path, script, accelerated, epochs) for accelerated in (False, True))
    worst = max(abs(a - b) for a, b in zip(plain, ours, strict=True))
    ms = [statistics.median(times) * 1e3 for times in (plain_times, our_times)]
    return {
        "table": "scripts", "script": " ".join((script.path, *script.arguments)), "data": source, "epochs": len(plain), "first loss": plain[0],
        "last loss": plain[-1], "last loss, accelerated": ours[-1], "largest difference": round(worst, 4), "ms a step": round(ms[0], 1),
        "accelerated": round(ms[1], 1), "times": round(ms[0] / ms[1], 2), "MB": round(mb, 1), "MB, accelerated": round(our_mb, 1),
    }  # fmt: skip


def main() -> None:
    """Run all scripts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", type=Path, required=True, help="the folder examples of pytorch_geometric")
    parser.add_argument("--data", type=Path, default=Path("nowhere"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pyg", default="", help="folder with torch_geometric, where it is not installed")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", default="", help="scripts whose path has this in it")
    parser.add_argument("--dry", action="store_true", help="two epochs")
    args = parser.parse_args()
    if args.dry:
        args.epochs = 2
    if args.pyg:
        sys.path.append(args.pyg)
    torch.set_num_threads(1)
    import torch_geometric.datasets as published

    found, sources = datasets(args.data)
    for name, given in found.items():
        setattr(published, name, given)
    sys.modules.setdefault("tqdm", types.ModuleType("tqdm")).__dict__.setdefault("tqdm", lambda x: x)
    with rows_file(args.out) as write:
        for script in SCRIPTS:
            if args.only not in script.path:
                continue
            try:
                row = row_of(script, args.scripts, sources, args.epochs)
            except Exception as problem:
                row = {"table": "failures", "script": script.path, "note": note_of(problem)}
            write(row)


if __name__ == "__main__":
    main()
