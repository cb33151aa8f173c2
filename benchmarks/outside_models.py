"""Public models that nobody had opened here before: which are captured whole, which in parts, which not at all and why, and is what is written right?

    pip install --no-deps --target LIB conformer performer-pytorch nystrom-attention perceiver-pytorch tab-transformer-pytorch egnn-pytorch \
        vector-quantize-pytorch mixture-of-experts pytorch-tcn reformer-pytorch local-attention x-transformers siren-pytorch efficientnet-pytorch \
        resnest einops einx loguru axial-positional-embedding product-key-memory hyper-connections torch-einops-utils \
        x-mlps-pytorch frozendict colt5-attention beartype linformer axial-attention mlp-mixer-pytorch g-mlp-pytorch lambda-networks \
        halonet-pytorch invariant-point-attention segformer-pytorch etsformer-pytorch bottleneck-transformer-pytorch flash-pytorch \
        rotary-embedding-torch scipy
    PYTHONPATH=LIB python -m benchmarks.outside_models [NAME ...] [--out FOLDER]      2 minutes

Small configurations, random weights, eval mode. Each is saved as `optimize` saves it, captured, rewritten by every rewrite that folds or drops
work, and compared with the original from its text: its error against the original is at most 1e-4 of the largest result. Packages that are missing
give rows that say so. With `--out` the rows are in rows.jsonl after each model, and a README.md at the end, whose table `python -m benchmarks.tables`
writes.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import textwrap
import time
import traceback
import warnings
from collections.abc import Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import torch

from benchmarks.models import eighth, fifth, fourth, seventh, third
from benchmarks.models.third import Maker, normal, of, tokens
from benchmarks.third_party import exact_steps, leaves
from warpwright.domains import graph
from warpwright.errors import WarpwrightError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module

MOST_DIFFERENT = 1e-4


def _x_transformer() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    x = import_module("x_transformers")
    layers = x.Decoder(dim=32, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True)
    return x.TransformerWrapper(num_tokens=100, max_seq_len=32, attn_layers=layers), (torch.randint(0, 100, (2, 16)),)


MODELS: Mapping[str, Maker] = {
    "conformer": of("conformer", "ConformerBlock", normal(2, 32, 32), dim=32, dim_head=16, heads=2),
    "performer": of("performer_pytorch", "PerformerLM", tokens(2, 32), num_tokens=100, max_seq_len=32, dim=32, depth=2, heads=2, causal=False),
    "nystrom": of("nystrom_attention", "Nystromformer", normal(2, 64, 32), dim=32, dim_head=16, heads=2, depth=2, num_landmarks=16),
    "perceiver": of(
        "perceiver_pytorch", "Perceiver", normal(2, 8, 8, 3), input_channels=3, input_axis=2, num_freq_bands=4, max_freq=8.0, depth=2,
        num_latents=16, latent_dim=32, latent_heads=2, latent_dim_head=16, cross_dim_head=16, num_classes=10,
    ),
    "ft_transformer": of(
        "tab_transformer_pytorch", "FTTransformer", lambda: (torch.randint(0, 5, (4, 3)), torch.randn(4, 6)), categories=(5, 6, 7), num_continuous=6,
        dim=32, dim_out=1, depth=2, heads=2,
    ),
    "egnn": of("egnn_pytorch", "EGNN_Network", lambda: (torch.randint(0, 9, (1, 12)), torch.randn(1, 12, 3)), num_tokens=9, dim=16, depth=2),
    "egnn_nearest": of("egnn_pytorch", "EGNN", lambda: (torch.randn(1, 12, 16), torch.randn(1, 12, 3)), dim=16, num_nearest_neighbors=4),
    "vector_quantize": of("vector_quantize_pytorch", "VectorQuantize", normal(2, 16, 32), dim=32, codebook_size=24),
    "residual_fsq": of("vector_quantize_pytorch", "ResidualFSQ", normal(2, 16, 32), dim=32, levels=[8, 5, 5, 3], num_quantizers=2),
    "mixture_of_experts": of("mixture_of_experts", "MoE", normal(2, 32, 32), dim=32, num_experts=4),
    "tcn": of("pytorch_tcn", "TCN", normal(2, 4, 40), num_inputs=4, num_channels=[8, 8, 8], kernel_size=3),
    "reformer": of("reformer_pytorch", "Reformer", normal(2, 64, 32), dim=32, depth=2, heads=2, bucket_size=16),
    "local_attention": of("local_attention", "LocalTransformer", tokens(2, 32), num_tokens=100, dim=32, depth=2, max_seq_len=32,
                           local_attn_window_size=8, causal=True),
    "x_transformers": _x_transformer,
    "siren": of("siren_pytorch", "SirenNet", normal(64, 2), dim_in=2, dim_hidden=32, dim_out=3, num_layers=3),
    "efficientnet": lambda: (import_module("efficientnet_pytorch").EfficientNet.from_name("efficientnet-b0"), (torch.randn(1, 3, 64, 64),)),
    "resnest": lambda: (import_module("resnest.torch").resnest50(), (torch.randn(1, 3, 64, 64),)),
    "linformer": of("linformer", "Linformer", normal(2, 64, 32), dim=32, seq_len=64, depth=2, heads=2, k=16),
    "axial_attention": of("axial_attention", "AxialAttention", normal(1, 32, 12, 10), dim=32, dim_index=1, heads=2, num_dimensions=2),
    "mlp_mixer": of("mlp_mixer_pytorch", "MLPMixer", normal(1, 3, 32, 32), image_size=32, channels=3, patch_size=8, dim=32, depth=2, num_classes=9),
    "g_mlp": of("g_mlp_pytorch", "gMLPVision", normal(1, 3, 32, 32), image_size=32, patch_size=8, dim=32, depth=2, num_classes=9),
    "lambda_layer": of("lambda_networks", "LambdaLayer", normal(1, 32, 16, 16), dim=32, dim_out=32, r=5, dim_k=16, heads=4, dim_u=2),
    "halo_attention": of("halonet_pytorch", "HaloAttention", normal(1, 32, 16, 16), dim=32, block_size=4, halo_size=2, dim_head=16, heads=2),
    "point_attention": of("invariant_point_attention", "IPATransformer", tokens(1, 16), dim=32, depth=2, num_tokens=100),
    "segformer": of(
        "segformer_pytorch", "Segformer", normal(1, 3, 64, 64), dims=(16, 32, 48, 64), heads=(1, 2, 2, 4), ff_expansion=(2, 2, 2, 2),
        reduction_ratio=(8, 4, 2, 1), num_layers=1, decoder_dim=32, num_classes=4,
    ),
    "etsformer": of("etsformer_pytorch", "ETSFormer", normal(1, 64, 4), time_features=4, model_dim=32, embed_kernel_size=3, layers=2, heads=2, K=2),
    "bottleneck_stack": of("bottleneck_transformer_pytorch", "BottleStack", normal(1, 32, 16, 16), dim=32, fmap_size=16, dim_out=64, heads=2),
    "gated_attention": of("flash_pytorch", "GAU", normal(1, 64, 32), dim=32, query_key_dim=16),
}  # fmt: skip


def attempt(name: str, maker: Maker, folder: Path, table: str = "outside_models") -> dict[str, Any]:
    """Return one row of the table."""
    begun = time.perf_counter()
    row: dict[str, Any] = {"table": table, "model": name, "captured": "no", "parts": "", "operators": 0, "right": "", "reason": ""}
    torch.manual_seed(0)
    try:
        model, given = maker()
    except ImportError as error:
        return row | {"reason": f"not installed: {error.name}"}
    model.eval().requires_grad_(False)
    try:
        saved_module.write(model, given, folder / f"{name}.pt")
        space = graph.space(taskfile.describe(folder / f"{name}.pt"))
        row |= _read(space)
        if not space.limited:
            row["right"] = _compared(space, name, model, given)
    except (WarpwrightError, RuntimeWarning, RuntimeError, TypeError, ValueError, AttributeError, AssertionError) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        row["reason"] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]} ({Path(place.filename).name}:{place.lineno})"
    return row | {"seconds": round(time.perf_counter() - begun, 1)}


def _read(space: Any) -> dict[str, Any]:
    """Return what was captured."""
    if space.limited:
        return {"captured": "no", "reason": space.limited[:300]}
    if not space.note:
        return {"captured": "whole", "operators": _operators(space.start)}
    paths = [path for piece in space.start.pieces for path in piece.paths]
    count = sum(_operators(piece.programs[0]) * len(piece.paths) for piece in space.start.pieces)
    return {"captured": "in parts", "parts": f"{len(paths)}: {', '.join(paths[:4])}", "operators": count, "reason": space.start.unreadable[:300]}


def _operators(ir: Any) -> int:
    return sum(node.op == "call_function" for node in ir.graph.nodes)


def _compared(space: Any, name: str, model: torch.nn.Module, given: tuple[Any, ...]) -> str:
    recipe = exact_steps(space)
    text = space.candidate(recipe).source.text
    new = taskfile.run_text(text, f"<{name}>", f"outside_{name}").ModelNew().eval().requires_grad_(False)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*takes the original's forward")  # such a call proves nothing
        torch.manual_seed(1)
        expected = leaves(model(*given))
        torch.manual_seed(1)
        found = leaves(new(*given))
    error = max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)) if b.numel() else 0.0 for a, b in zip(found, expected, strict=True))
    return f"{'yes' if error <= MOST_DIFFERENT else 'WRONG'} ({error:.0e}, {len(recipe)} steps)"


def main() -> None:
    """Print and write a row a model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--third", action="store_true", help="those of models/third.py")
    parser.add_argument("--fourth", action="store_true", help="those of models/fourth.py")
    parser.add_argument("--fifth", action="store_true", help="those of models/fifth.py")
    parser.add_argument("--seventh", action="store_true", help="those of models/seventh.py")
    parser.add_argument("--eighth", action="store_true", help="those of models/eighth.py")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    models, table = (third.MODELS, "outside_third") if options.third else (MODELS, "outside_models")
    models, table = (fourth.MODELS, "outside_fourth") if options.fourth else (models, table)
    models, table = (fifth.MODELS, "outside_fifth") if options.fifth else (models, table)
    models, table = (seventh.MODELS, "outside_seventh") if options.seventh else (models, table)
    models, table = (eighth.MODELS, "outside_eighth") if options.eighth else (models, table)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or list(models):
            rows.append(attempt(name, models[name], Path(folder), table))
            print(f"| {' | '.join(str(value) for key, value in rows[-1].items() if key != 'table')} |", flush=True)
            if options.out is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if options.out is not None:
        (options.out / "README.md").write_text(page(rows))


def page(rows: list[dict[str, Any]]) -> str:
    """Return the README of the rows' folder, its table still empty."""
    count = {kind: sum(row["captured"] == kind for row in rows) for kind in ("whole", "in parts", "no")}
    said = f"Of {len(rows)} public models {count['whole']} are captured whole, {count['in parts']} in parts, {count['no']} not; "
    said += f"{sum('WRONG' in row['right'] for row in rows)} of what was written is wrong."
    about = f"torch {metadata.version('torch')}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}. "
    about += "`python -m benchmarks.outside_models`."
    return (
        f"# Public models from outside\n\n## Conditions\n\n{textwrap.fill(about, 100)}\n\n## Headline\n\n{textwrap.fill(said, 100)}\n\n"
        "<!-- table: outside_models -->\n<!-- end -->\n"
    )


if __name__ == "__main__":
    main()
