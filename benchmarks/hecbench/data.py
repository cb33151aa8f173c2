"""Input files for HeCBench's programs whose own files are kept elsewhere: generated from a fixed seed, in the form that each program reads.

    python -m benchmarks.hecbench.data /path/to/HeCBench/src        # a copy: files are added, none is replaced

The program and its twin read the same file, and its own check compares with the host's answer on that file, so a generated file judges as well as the
original one; what a file represents (a road network, a photograph) is lost. Programs whose check needs the original content (trained weights,
reference energies, thermodynamic tables) get none.
"""

from __future__ import annotations

import itertools
import re
import struct
import sys
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(20260519)


def lines(rows: np.ndarray, form: str = "%g", between: str = " ") -> str:
    return "\n".join(between.join(form % value for value in row) for row in rows) + "\n"


def bmp(width: int = 256, height: int = 256) -> bytes:
    """Return a picture of smooth waves with noise, 24 bits a pixel."""
    y, x = np.mgrid[:height, :width]
    waves = 128 + 80 * np.sin(x / 17) * np.cos(y / 23)
    pixels = np.clip(waves[..., None] + RNG.integers(-20, 20, (height, width, 3)), 0, 255).astype(np.uint8)
    head = struct.pack("<2sIHHI", b"BM", 54 + pixels.nbytes, 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, pixels.nbytes, 2835, 2835, 0, 0) + pixels.tobytes()


def ppm(width: int = 512, height: int = 384) -> bytes:
    return f"P6\n{width} {height}\n255\n".encode() + bmp(width, height)[54:]


def graph(nodes: int = 20000, degree: int = 6) -> str:
    """Return Rodinia's form of a graph: starts and degrees, the source, edges with costs."""
    edges = RNG.integers(0, nodes, (nodes, degree)).reshape(-1)
    starts = lines(np.stack([np.arange(nodes) * degree, np.full(nodes, degree)], 1), "%d")
    return f"{nodes}\n{starts}\n0\n\n{len(edges)}\n" + lines(np.stack([edges, RNG.integers(1, 10, len(edges))], 1), "%d")


def mesh(side: int = 64) -> str:
    """Return Rodinia's form of a mesh for cfd: cells of a square with one wall on the left and open sides elsewhere."""
    rows = [str(side * side)]
    for i in range(side * side):
        x, y = i % side, i // side
        right, left = i + 2 if x < side - 1 else -2, i if x else (0 if side // 3 < y < side // 2 else -2)
        up, down = i + side + 1 if y < side - 1 else -2, i - side + 1 if y else -2
        rows.append(f"0.01 {right} 0.1 0 0 {left} -0.1 0 0 {up} 0 0.1 0 {down} 0 -0.1 0")
    return "\n".join(rows) + "\n"


def reads(count: int = 30000, length: int = 100) -> str:
    """Return pairs of a read and the reference it was taken from, with 0 to 8 changed letters."""
    letters = np.frombuffer(b"ACGT", np.uint8)
    reference = letters[RNG.integers(0, 4, (count, length))]
    read = reference.copy()
    for row, changes in zip(read, RNG.integers(0, 9, count), strict=True):
        row[RNG.integers(0, length, changes)] = letters[RNG.integers(0, 4, changes)]
    return "".join(f"{a.tobytes().decode()}\t{b.tobytes().decode()}\n" for a, b in zip(read, reference, strict=True))


def records(count: int = 2000) -> str:
    """Return hurricane records of 48 letters for nn: latitude at 28, longitude at 33."""
    places = np.stack([RNG.uniform(7, 65, count), RNG.uniform(10, 99, count)], 1)
    return "".join(f"{'1950 12 31 18 1 STORM':28s}{lat:5.1f}{long:5.1f}{'100 200':>10s}\n" for lat, long in places)


def twisters(count: int = 4096) -> tuple[bytes, bytes]:
    """Return parameters of Mersenne twisters of period 2**607 - 1, short and whole form; their matrices are random, so their streams are poor."""
    words = RNG.integers(0, 1 << 32, (count, 3), dtype=np.uint64).astype(np.uint32)
    stripped = np.concatenate([words, np.zeros((count, 1), np.uint32)], 1)
    fixed = [9, 19, 1, 32, 0xFFFFFFFF, 0xFFFFFFFE, 1, 12, 18, 7, 15]
    whole = np.concatenate([words[:, :1], np.tile(np.array(fixed, np.uint32), (count, 1)), words[:, 1:], np.zeros((count, 2), np.uint32)], 1)
    return stripped.tobytes(), whole.tobytes()


def clusters(spread: float, count: int = 10000) -> tuple[str, str]:
    """Return points around three centres, and the centres."""
    centres = np.array([[0.0, 0, 0], [200, 0, 50], [50, 220, 180]])
    points = centres[RNG.integers(0, 3, count)] + RNG.normal(0, spread, (count, 3))
    return lines(points, "%.4f", ","), lines(centres, "%.4f", ",")


def groups(count: int = 3000, features: int = 34) -> str:
    """Return numbered points in five groups far apart, for kmeans: whose centre a point belongs to does not hang on rounding."""
    points = RNG.uniform(0, 5, (count, features)) + 3 * (np.arange(count) % 5)[:, None] * np.cos(np.arange(features))
    return "".join(f"{i} {row}" for i, row in enumerate(lines(points, "%.3f").splitlines(True)))


def text_with(word: str) -> str:
    words = ["kernel", "queue", "buffer", "clFinish", "event", "range", "device"]
    return " ".join(word if i % 97 == 5 else words[k] for i, k in enumerate(RNG.integers(0, len(words), 20000)))


def matrix_market(rows: int = 2000) -> str:
    """Return a lower triangle with a full diagonal."""
    entries = {(r, r): 4.0 + RNG.random() for r in range(rows)}
    entries |= {(int(a), int(b)): float(RNG.random()) for a, b in RNG.integers(0, rows, (8000, 2)) if a > b}
    body = "".join(f"{r + 1} {c + 1} {value:.6f}\n" for (r, c), value in sorted(entries.items()))
    return f"%%MatrixMarket matrix coordinate real general\n{rows} {rows} {len(entries)}\n{body}"


def mri() -> bytes:
    k, x = 512, 4096
    return struct.pack("<ii", k, x) + RNG.uniform(-1, 1, 3 * k + 3 * x + 2 * k).astype(np.float32).tobytes()


def fasta(count: int = 300) -> str:
    """Return sequences of which a third are near copies of others."""
    letters = np.frombuffer(b"ACGT", np.uint8)
    made: list[np.ndarray] = []
    for i in range(count):
        row = made[int(RNG.integers(0, i))].copy() if i % 3 == 2 else letters[RNG.integers(0, 4, int(RNG.integers(200, 400)))]
        row[RNG.integers(0, len(row), 2)] = letters[RNG.integers(0, 4, 2)]
        made.append(row)
    return "".join(f">seq{i}\n{row.tobytes().decode()}\n" for i, row in enumerate(made))


def genes(rows: int = 100, columns: int = 50) -> str:
    """Return expressions of genes, of which 30 rise together in 25 of the samples and are low, each in its own way, in all others, for ccs."""
    head = "gene" + "".join(f"\tc{j}" for j in range(columns))
    values = RNG.normal(0, 1, (rows, columns))
    values[10:40] -= 3
    values[10:40, 5:30] = np.linspace(5, 9, 25) + RNG.normal(0, 0.05, (30, 25))
    return head + "\n" + "".join(f"g{i}\t" + "\t".join(f"{v:.4f}" for v in row) + "\n" for i, row in enumerate(values))


def volumes(materials: int = 50) -> str:
    """Return volume fractions for 1000 x 1000 cells, of one or two materials each."""
    first = (np.add.outer(np.arange(1000) // 100 * 5, np.arange(1000) // 200)).reshape(-1) % materials
    mixed = RNG.random(first.size) < 0.045  # the program has room for 4.9 %
    zeros = ["0"] * materials
    rows = []
    for material, two in zip(first.tolist(), mixed.tolist(), strict=True):
        row = zeros.copy()
        row[material] = "0.6" if two else "1"
        if two:
            row[(material + 1) % materials] = "0.4"
        rows.append(" ".join(row))
    return f"{materials} {materials}\n" + " ".join(f"m{i}" for i in range(materials)) + "\n" + "\n".join(rows) + "\n"


def image(side: int = 256, beam: bool = False) -> bytes:
    """Return a square of floats: a beam with side lobes, or sources seen through it."""
    y, x = np.mgrid[:side, :side] - side // 2
    r = np.hypot(x, y)
    psf = np.exp(-((r / 3) ** 2)) + 0.02 * np.cos(r / 5) * np.exp(-r / 40)
    psf /= psf.max()
    if beam:
        return psf.astype(np.float32).tobytes()
    sky = sum(RNG.uniform(0.5, 5) * np.roll(psf, RNG.integers(-80, 80, 2), (0, 1)) for _ in range(12)) + RNG.normal(0, 0.001, psf.shape)
    return np.asarray(sky).astype(np.float32).tobytes()


def detections(count: int = 256) -> str:
    """Return squares around a few faces with scores, for nms."""
    faces = np.stack([RNG.integers(100, 900, 12), RNG.integers(100, 900, 12), RNG.integers(24, 80, 12)], 1)
    squares = faces[RNG.integers(0, 12, count)] + RNG.integers(-6, 7, (count, 3))
    return "".join(f"{x},{y},{side},{score:.6f}\n" for (x, y, side), score in zip(squares, RNG.uniform(20, 60, count), strict=True))


def seismic(gathers: int = 4, traces: int = 16, samples: int = 200) -> bytes:
    """Return Seismic Unix traces (a head of 240 bytes, then floats) with one reflection each, for cmp."""
    made = b""
    for cdp in range(gathers):
        for half in range(10, 10 + 20 * traces, 20):
            at = 40 + 10 * cdp + (half * half) // 4000
            data = RNG.normal(0, 0.05, samples) + np.exp(-0.5 * ((np.arange(samples) - at) / 3) ** 2)
            first = (*range(1, 6), cdp + 1, 1, 1, 1, 1, 1, 2 * half, *[0] * 7, 1, 1)
            head = struct.pack("<7i4h8i2h4i13h2H", *first, 100 * cdp - half, 0, 100 * cdp + half, 0, *[0] * 13, samples, 2000)
            made += head.ljust(240, b"\0") + data.astype(np.float32).tobytes()
    return made


def crystal(atoms: int = 64) -> str:
    """Return a cubic cell of 26 Angstrom with atoms at random places, for henry."""
    elements = RNG.choice(["Zn", "O", "C", "H"], atoms)
    rows = [f"{i + 1} {elements[i]} {x:.6f} {y:.6f} {z:.6f}" for i, (x, y, z) in enumerate(RNG.random((atoms, 3)))]
    return "\n".join(["26.0 26.0 26.0", "90 90 90", str(atoms), "made", *rows]) + "\n"


def deck() -> dict[str, bytes | str]:
    """Return a ligand, a protein, a force field and poses for minibude; the reference energies are not its answers: the twin is the judge."""
    kinds, poses = 8, 1024
    def placed(count: int, size: float) -> bytes:
        return np.rec.fromarrays([*RNG.uniform(-size, size, (3, count)).astype(np.float32), RNG.integers(0, kinds, count).astype(np.int32)]).tobytes()

    field = [RNG.choice([69, 70, 78], kinds).astype(np.int32), *RNG.uniform(0.5, 2, (3, kinds)).astype(np.float32)]
    moves = np.concatenate([RNG.uniform(0, 6.28, (3, poses)), RNG.uniform(-8, 8, (3, poses))]).astype(np.float32)
    return {
        "ligand.in": placed(26, 4), "protein.in": placed(200, 20), "forcefield.in": np.rec.fromarrays(field).tobytes(), "poses.in": moves.tobytes(),
        "ref_energies.out": "1\n" * poses,
    }  # fmt: skip


def bigrams(program: str) -> str:
    """Return pairs of letters with minus the logarithm of how often they are in the text that columnarSolver is to find."""
    found = re.search(r'DECRYPTED_T "([a-z]+)"', program)
    letters = found[1] if found else ""
    counts = np.full((26, 26), 0.1)
    for a, b in itertools.pairwise(letters):
        counts[ord(a) - 97, ord(b) - 97] += 1
    scores = -np.log(counts / counts.sum())
    return "".join(f"{chr(97 + a)}{chr(97 + b)} {scores[a, b]:.4f}\n" for a in range(26) for b in range(26))


def sea(columns: int = 101, rows: int = 91) -> str:
    """Return a Surfer grid of depths around Sumatra's west coast (made, with a straight coast), for easyWave."""
    x, y = np.meshgrid(np.linspace(96, 106, columns), np.linspace(-9, 0, rows))
    off = (103.5 - x) - (y + 4.5)  # degrees from the coast
    depth = np.where(off < 0, 50.0, -np.clip(900 * off, 30, 5000))
    return f"DSAA\n{columns} {rows}\n96 106\n-9 0\n-5000 50\n" + lines(depth, "%.1f")


def square_lattice(side: int = 48) -> dict[str, str]:
    """Return a square lattice with equal hoppings for lsqt."""
    hoppings = "1 0 0 0 -1 0\n-1 0 0 0 -1 0\n0 1 0 0 -1 0\n0 -1 0 0 -1 0\n"
    return {
        "input.txt": "examples/square\n",
        "square/para.in": "model 1\nanderson_disorder 1\ncalculate_vac\nnumber_of_random_vectors 1\nnumber_of_moments 60\nenergy_max 5.1\n",
        "square/energy.in": "21\n" + "".join(f"{e:.2f}\n" for e in np.linspace(-4, 4, 21)),
        "square/time_step.in": "4\n1\n1\n1\n1\n",
        "square/lattice.in": f"{side} {side} 1\n1 1 0 0\n1 1 1\n1 4\n0 0 0\n4\n{hoppings}",
    }


def anchors(calls: int = 2, count: int = 150) -> str:
    """Return chains of matching places of two sequences, with stray matches, for minimap2."""
    made = []
    for _ in range(calls):
        x = np.sort(RNG.integers(0, 30000, count))
        y = np.where(RNG.random(count) < 0.8, x + RNG.integers(-30, 30, count), RNG.integers(0, 30000, count))
        rows = np.stack([np.zeros(count, int), x, RNG.integers(10, 20, count), np.clip(y, 0, None)], 1)
        made.append(f"{count} 15.0 5000 5000 500\n{lines(rows, '%d', chr(9))}EOR\n")
    return "".join(made)


def neighbours(twojmax: int = 6, atoms: int = 32, near: int = 12, ghosts: int = 20) -> str:
    """Return atoms with neighbours at random places for testSNAP; the reference forces are 0, so that its deviation is the force itself."""
    triples = [(j1, j2, j) for j1 in range(twojmax + 1) for j2 in range(j1 + 1) for j in range(j1 - j2, min(twojmax, j1 + j2) + 1, 2) if j >= j1]
    places = RNG.normal(0, 1, (atoms * near, 3))
    places *= (RNG.uniform(1.8, 4.2, atoms * near) / np.linalg.norm(places, axis=1))[:, None]
    coefficients, others = RNG.normal(0, 0.1, len(triples) + 1), RNG.integers(0, atoms + ghosts, atoms * near)
    parts = [", ".join(f"{v:.12g}" for v in part.reshape(-1)) for part in (coefficients, places, others, np.zeros(3 * (atoms + ghosts)))]
    sizes = f"double coeff[{len(coefficients)}], rij[{places.size}]; int jlist[{len(others)}]; double fj[{3 * (atoms + ghosts)}];"
    numbers = f"{near}, {len(triples)}, {atoms}, {ghosts}, {twojmax}, 4.67637"
    return (
        f"static const struct {{ int ninside, ncoeff, nlocal, nghost, twojmax; double rcutfac; {sizes} }} refdata = {{\n{numbers},\n"
        + ",\n".join(f"{{{part}}}" for part in parts) + "};\n"
    )  # fmt: skip


def expression() -> dict[str, str]:
    """Return ranks of 22,283 genes under four drugs, and a query of 20 genes, for cm."""
    names = [f"{i}_at" for i in range(22283)]
    made = {"Results/made.txt": "results come here\n"}
    for drug, cells in (("aspirin", "1"), ("aspirin", "2"), ("caffeine", "1"), ("taxol", "1"), ("zinc", "1")):
        ranks = RNG.permutation(22283) - 11141
        made[f"reffiles-tab/{drug}_10uM_MCF7_{cells}.tab"] = "id\trank\n" + "".join(f"{n}\t{r}\n" for n, r in zip(names, ranks, strict=True))
    made["queries/query.sig"] = "".join(f"{names[i]}\t{sign}\n" for i, sign in zip(RNG.integers(0, 22283, 20), RNG.choice([-1, 1], 20), strict=True))
    return made


def both(name: str, file: str, content: str | bytes) -> dict[str, str | bytes]:
    """Return one file for a program and its twin."""
    return {f"{name}-cuda/{file}": content, f"{name}-omp/{file}": content}


def files(source: Path) -> dict[str, str | bytes]:
    """Return every made file: its place under src -> its content."""
    made: dict[str, str | bytes] = {}
    picture = bmp()
    made |= {"urng-sycl/URNG_Input.bmp": picture, "sobel-sycl/SobelFilter_Input.bmp": picture}
    made["medianfilter-sycl/data/SierrasRGB.ppm"] = ppm()
    made |= both("recursiveGaussian", "StoneRGB.ppm", ppm())
    made["data/bfs/graph1MW_6.txt"] = graph()
    made["data/cfd/fvcorr.domn.097K"] = mesh()
    made["data/b+tree/mil.txt"] = "20000\n" + "\n".join(map(str, RNG.permutation(20000))) + "\n"
    made["data/b+tree/command.txt"] = "j 600 300\n\nk 2000\n\n"
    made["data/kmeans/kdd_cup"] = groups()
    made["data/hotspot3D/power_64x8"] = lines(RNG.uniform(0, 1e-3, (64 * 64 * 8, 1)), "%.6f")
    made["data/hotspot3D/temp_64x8"] = lines(RNG.uniform(320, 340, (64 * 64 * 8, 1)), "%.4f")
    made |= {f"data/nn/cane4_{i}.db": records() for i in range(4)}
    made["geodesic-sycl/locations.txt"] = lines(np.stack([RNG.uniform(-89, 89, 2097152), RNG.uniform(-179, 179, 2097152)], 1), "%.4f")
    made |= both("svd3x3", "Dataset_1M.txt", "20000\n" + lines(RNG.uniform(-1, 1, (20000, 9)), "%.6f"))
    made["ss-sycl/StringSearch_Input.txt"] = text_with("clEnqueueNDRangeKernel")
    made |= both("snake", "Datasets/ERR240727_1_E2_30000Pairs.txt", reads())
    made |= both("mriQ", "datasets/128x128x128/input/128x128x128.bin", mri())
    short, whole = twisters()
    made |= both("mt", "data/MersenneTwister.dat", short) | both("mt", "data/MersenneTwister.raw", whole)
    points, centres = clusters(2)  # meanshift's window has a width of 4
    made |= both("meanshift", "dataset/data.csv", points) | both("meanshift", "dataset/centroids.csv", centres)
    made |= both("gmm", "data", "a,b,c\n" + clusters(8)[0])
    made["sptrsv-sycl/lp1.mtx"] = matrix_market()
    made |= both("d2q9-bgk", "Inputs/input_256x256.params", "128\n128\n200\n128\n0.1\n0.005\n1.7\n")
    obstacles = [(x, y, 1) for x in range(128) for y in range(128) if y in (0, 127) or (x - 40) ** 2 + (y - 64) ** 2 < 150]
    made |= both("d2q9-bgk", "Obstacles/obstacles_256x256.dat", lines(np.array(obstacles), "%d"))
    made["deredundancy-sycl/testData.fasta"] = fasta()
    made |= both("ccs", "Data_Constant_100_1_bicluster.txt", genes())
    made |= both("multimaterial", "volfrac.dat", volumes())
    made |= both("hogbom", "data/dirty_4096.img", image()) | both("hogbom", "data/psf_4096.img", image(beam=True))
    made["tonemapping-sycl/input.hdr"] = "256 256\n" + lines(RNG.uniform(0, 4, (256 * 256, 4)), "%.4f")
    line = np.linspace(0, 100, 96453)
    made["lr-sycl/assets/temperature.txt"] = lines(np.stack([line, 0.4 * line - 10 + RNG.normal(0, 2, 96453)], 1), "%.4f", "\t")
    made |= both("permutate", "test_data/truerand_1bit.bin", RNG.integers(0, 2, 1_000_000).astype(np.uint8).tobytes())
    made |= both("mcpr", "alphas.csv", lines(RNG.dirichlet(np.ones(21), 26280), "%.6f", ","))
    made |= both("nms", "few.txt", detections())
    made |= both("deredundancy", "few.fasta", fasta(24))
    made |= both("cmp", "data/simple-synthetic.su", seismic())
    made |= both("henry", "IRMOF-1.cssr", crystal())
    made |= {f"minibude-sycl/data/bm1/{name}": content for name, content in deck().items()}
    for name, count in (("input.hpp", 20000), ("weight_1.hpp", 146), ("weight_2.hpp", 146)):
        made |= both("clink", name, lines(RNG.uniform(-1, 1, (count, 1)), "%.6f"))
    made |= both("columnarSolver", "data", bigrams((source / "columnarSolver-cuda/main.cu").read_text()))
    made["easyWave-omp/data/grids/e2Asean.grd"] = sea()
    for name, content in square_lattice().items():
        made |= both("lsqt", f"examples/{name}", content)
    made["minimap2-sycl/in-1k.txt"] = anchors()
    made["testSNAP-omp/refdata_2J14_W.h"] = neighbours()
    for name, content in expression().items():
        made |= both("cm", name, content)
    return made


def main() -> None:
    source = Path(sys.argv[1])
    for place, content in files(source).items():
        file = source / place
        if file.exists() or not (source / place.partition("/")[0]).is_dir():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        print(place)


if __name__ == "__main__":
    main()
