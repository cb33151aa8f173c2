"""Rodinia's programs: which sources, how they are called, what they read and write, and what that is compared with.

Nothing of Rodinia is kept here but names and the few words at which a line is put into a copy of the source. Such lines, the same for the program
and its OpenMP twin, write the result arrays of programs that print nothing usable. Kernels are never changed, except in `breaks`: one change for
each program that makes a kernel wrong, to test that a wrong kernel is detected."""

from __future__ import annotations

from functools import partial

from benchmarks.rodinia import data, reference
from benchmarks.rodinia.judge import PRINTED, Answer
from benchmarks.rodinia.sides import Content, Program, Side, before, keep


def cfd(name: str, twin: str) -> Program:
    out = tuple(Answer(file) for file in ("density", "momentum", "density_energy"))
    fewer = "#define iterations 2000", "#define iterations 40"
    sources = f"{name}.cu", f"{twin}.cpp"
    return Program(
        f"cfd/{name}",
        Side("cuda/cfd", sources[:1], "../../data/cfd/fvcorr.domn.097K", out, ((sources[0], *fewer),)),
        Side("openmp/cfd", sources[1:], "../../data/cfd/fvcorr.domn.097K", out, ((sources[1], *fewer),), ("block_length=192",)),
        "twin",
        {"data/cfd/fvcorr.domn.097K": data.mesh},
        1e-4,
        (sources[0], "fluxes[i + VAR_DENSITY*nelr] = flux_i_density", "fluxes[i + VAR_DENSITY*nelr] = 1.1f * flux_i_density"),
    )


def dwt2d(transform: str, forward: bool) -> Program:
    kind = "i4" if transform == "5" else "f4"
    kept = keep("out.bin", "gpu_output", "samplesNum", "T")
    sources = ("main.cu", "dwt.cu", "components.cu", *(f"dwt_cuda/{name}.cu" for name in ("fdwt53", "fdwt97", "common", "rdwt97", "rdwt53")))
    kernel = f"{'f' if forward else 'r'}dwt{'53' if transform == '5' else '97'}"
    wrong = {
        "fdwt53": ("c -= (p + n) / 2", "c -= (p + n) / 3"),
        "rdwt53": ("c += (p + n) / 2", "c += (p + n) / 3"),
        "fdwt97": ("AddScaledSum(f97Update2)", "AddScaledSum(f97Update1)"),
        "rdwt97": ("AddScaledSum(r97update2)", "AddScaledSum(r97update1)"),
    }
    breaks = f"dwt_cuda/{kernel}.cu", *wrong[kernel]
    return Program(
        f"dwt2d/{kernel}",
        Side(
            "cuda/dwt2d",
            sources,
            f"../../data/dwt2d/grey.raw made -d 192x192 -c 1 -{'f' if forward else 'r'} -{transform} -l 3",
            (Answer("out.bin", kind),),
            (before("dwt.cu", "    /* T to char */\n    samplesToChar(result, gpu_output, samplesNum);", kept),),
        ),
        partial(reference.wavelet, whole=transform == "5", forward=forward),
        "the transform in NumPy",
        {"data/dwt2d/grey.raw": partial(data.grey, 192)},
        0.0 if transform == "5" else 1e-4,
        breaks,
        given=(Answer("../../data/dwt2d/grey.raw", "u1"),),
    )


def myocyte(mode: int) -> Program:
    state, parameters = data.muscle()
    workload = 1 if mode == 0 else 4
    each = "for (i = 0; i < workload; i++) for (j = 0; j < 1 + xmax; j++)"
    rows = f'{{ FILE* ww_file = fopen("y.bin", "wb"); {each} fwrite(y[i][j], sizeof(fp), EQUATIONS, ww_file); fclose(ww_file); }}\n'
    flat = keep("y.bin", "y", "(size_t)workload * (xmax + 1) * EQUATIONS", "fp")
    edit = before("work.cu", "\t// y values\n", rows) if mode == 0 else before("work_2.cu", "\tfree(y);\n", flat)
    words = parameters.split()
    reordered = "\n".join([words[15], *words[:15]])  # the twin has the cycle's length first, and the last two as constants
    # isinf(-INFINITY) is -1 in C, true in C++ and CUDA, and slopes that are infinite are replaced
    own: tuple[tuple[str, str, str], ...]
    own = ("main.c", "myocyte/params.txt", "myocyte/other.txt"), ("master.c", "isinf(finavalu[i]) == 1", "isinf(finavalu[i])")
    own = own if mode == 0 else (*own, ("solver.c", "x[k] = k-1;", "x[k] = k;"))  # the time as the kernel for many cells has it
    model = "kernel_cam.cu" if mode == 0 else "kernel_cam_2.cu"
    fix = model, "d_finavalu[com_offset] = ", "d_com[com_offset] = "
    return Program(
        f"myocyte/{'one cell' if mode == 0 else 'many cells'}",
        Side("cuda/myocyte", ("main.cu",), f"4 {workload} {mode}", (Answer("y.bin", "f4", floor=1e-6),), (edit, fix)),
        Side(
            "openmp/myocyte",
            ("main.c",),
            f"4 {workload} 1 1",
            (Answer("y.bin", "f4", floor=1e-6),),
            (before("main.c", "\t// y values\n", rows), *own),
        ),
        "twin",
        {"data/myocyte/y.txt": lambda: state, "data/myocyte/params.txt": lambda: parameters, "data/myocyte/other.txt": lambda: reordered},
        1e-3,
        ("kernel_ecc.cu" if mode == 0 else "kernel_ecc_2.cu", "pi = 3.1416", "pi = 3.0"),
        "the calcium flux of calmodulin goes to d_com, where it is read, not over the slopes of the sodium gates",
    )


def particle_filter(kind: str, count: int, breaks: tuple[str, str]) -> Program:
    """Both print the place that they find, the naive one in each frame; the random numbers begin at the time, here at 7.

    The float one has a race between blocks (normalize_weights_kernel: block 0 sums weights that the others are to normalise): it gets one block."""
    source, twin = f"ex_particle_CUDA_{kind}_seq.cu", "ex_particle_OPENMP_seq.c"
    last = 2 if kind == "float" else 0
    printed = Answer(PRINTED, after="[XY]E: ", last=last)
    arrays = "".join(keep(f"{name}.bin", name, "Nparticles", "double") for name in ("arrayX", "arrayY", "weights"))
    place = '\t\tprintf("XE' if kind == "naive" else '    printf("XE'
    kept = (printed, *(Answer(f"{name}.bin", "f8") for name in ("arrayX", "arrayY", "weights")))
    edits = ((source, "time(0)", "7"), before(source, place, arrays)), ((twin, "time(0)", "7"), before(twin, '\t\tprintf("XE', arrays))
    return Program(
        f"particlefilter/{kind}",
        Side("cuda/particlefilter", (source,), f"-x 128 -y 128 -z 10 -np {count}", kept, edits[0]),
        Side("openmp/particlefilter", (twin,), f"-x 128 -y 128 -z 10 -np {count}", kept, edits[1]),
        "twin",
        {},
        1e-6,
        (source, *breaks),
    )


def leukocyte(folder: str, sources: tuple[str, ...], arguments: str) -> Side:
    library = _MESCHACH.split()
    inside = folder.rpartition("/")[2]
    whole = (*(f"{inside}/{name}" for name in sources), *(f"meschach_lib/{name}.c" for name in library))
    return Side(folder.rpartition("/")[0], whole, arguments, (Answer("result.txt"),), (), ("OUTPUT",), ("meschach_lib", inside))


_MESCHACH = """
copy err matrixio memory vecop matop pxop submat init otherio machine ivecop meminfo memstat lufactor bkpfacto chfactor
qrfactor solve hsehldr givens update norm bdfactor hessen symmeig schur svd fft mfunc sparse sprow sparseio spchfctr
splufctr spbkp spswap iter0 itersym iternsym zmachine zcopy zmatio zmemory zvecop zmatop znorm zfunc
"""
_B_TREE = "main.c", "util/timer/timer.c", "util/num/num.c"
_TREE_FILES = "file ../../data/b+tree/mil.txt command ../../data/b+tree/command.txt"
_BACKPROP = "backprop.c", "facetrain.c", "imagenet.c"
_SMALL = "imagenet.c", "rand()/RAND_MAX", "rand()/RAND_MAX/1024"
_PREVIOUS = "".join((
    "{ float* ww = (float*)malloc((in + 1) * (hid + 1) * sizeof(float));\n",
    "cudaMemcpy(ww, input_prev_weights_cuda, (in + 1) * (hid + 1) * sizeof(float), cudaMemcpyDeviceToHost);\n",
    keep("previous.bin", "ww", "(in + 1) * (hid + 1)"),
    "}\n",
))  # fmt: skip
_ROWS = "".join(
    f'{{ FILE* ww_file = fopen("{name}.bin", "wb"); for (int k = 0; k <= in; k++) '
    f"fwrite(net->{array}[k], sizeof(float), hid + 1, ww_file); fclose(ww_file); }}\n"
    for name, array in (("weights", "input_weights"), ("previous", "input_prev_weights"))
)
_CHANGED = Answer("weights.bin", "f4"), Answer("previous.bin", "f4")
_HOTSPOT = {
    "data/hotspot/temp_128": partial(data.cells, 128 * 128, 20.0, 400.0, 1),
    "data/hotspot/power_128": partial(data.cells, 128 * 128, 0.0, 1e-3, 2),
}
_HOTSPOT_3D = {
    "data/hotspot3D/power_64x8": partial(data.cells, 64 * 64 * 8, 0.0, 1e-3, 3),
    "data/hotspot3D/temp_64x8": partial(data.cells, 64 * 64 * 8, 320.0, 340.0, 4),
}
_HURRICANES: dict[str, Content] = {f"data/nn/cane4_{i}.db": partial(data.hurricanes, i) for i in range(4)}
_HURRICANES["data/nn/list"] = lambda: "".join(f"../../data/nn/cane4_{i}.db\n" for i in range(4))
_COLUMN = Answer("output.out", column=(1, 2))
_KMEANS = "cluster.c", "getopt.c", "kmeans.c", "kmeans_clustering.c"
_CENTRES = keep("centres.bin", "clusters[0]", "nclusters * nfeatures") + keep("members.bin", "membership", "npoints", "int")
_CENTRES_EDIT = before("kmeans_clustering.c", "    return clusters;", _CENTRES)
_CENTRES_ANSWERS = Answer("centres.bin", "f4"), Answer("members.bin", "i4")
_LAVA = "main.c", "srand(time(NULL))", "srand(7)"
_LUD = keep("lu.bin", "m", "matrix_dim * matrix_dim")
_STREAM = "10 20 32 2048 2048 200 none output.txt 1"
_MATCHES = Answer(PRINTED, after="(?m)^"), Answer(PRINTED, after=r"(?m)^\d+\t\d+\t")  # where in the reference, and how long
_NULL = ("-fno-delete-null-pointer-checks",)  # it asks `if (this)`
_MUMMER = (("suffix-tree.cpp", "#include <iostream>", "#include <unistd.h>\n#include <iostream>"),)
_SUMS = "while(ei_new < d_common.in2_sub_cumh_rows){"
_BARRIER = before("kernel.cu", _SUMS, "__syncthreads();\n")
_HEART = "main.{} ./AVI/avilib.c ./AVI/avimod.c"

PROGRAMS: tuple[Program, ...] = (
    Program(
        "b+tree",
        Side(
            "cuda/b+tree",
            (*_B_TREE, "util/cuda/cuda.cu", "kernel/kernel_gpu_cuda_wrapper.cu", "kernel/kernel_gpu_cuda_wrapper_2.cu"),
            _TREE_FILES,
            (Answer("output.txt"),),
        ),
        Side("openmp/b+tree", (*_B_TREE, "kernel/kernel_cpu.c", "kernel/kernel_cpu_2.c"), f"cores 2 {_TREE_FILES}", (Answer("output.txt"),)),
        "twin",
        {"data/b+tree/mil.txt": data.keys, "data/b+tree/command.txt": lambda: "j 600 300\n\nk 2000\n\n"},
        0.0,
        ("kernel/kernel_gpu_cuda.cu", "keys[thid] == keysD[bid]", "keys[thid] + 1 == keysD[bid]"),
    ),
    Program(
        "backprop",
        Side(
            "cuda/backprop",
            (*_BACKPROP, "backprop_cuda.cu"),
            "4096",
            _CHANGED,
            (
                _SMALL,
                before(
                    "backprop_cuda.cu",
                    "  cudaFree(input_prev_weights_cuda);",
                    _PREVIOUS + keep("weights.bin", "input_weights_one_dim", "(in + 1) * (hid + 1)"),
                ),
            ),
        ),
        Side(
            "openmp/backprop",
            (*_BACKPROP, "backprop_kernel.c"),
            "4096",
            _CHANGED,
            (_SMALL, ("backprop_kernel.c", "net->input_prev_weights);\n\n}", f"net->input_prev_weights);\n{_ROWS}}}")),
        ),
        "twin",
        {},
        1e-4,
        ("backprop_cuda_kernel.cu", "if( ty % power_two == 0 )", "if( ty % power_two == 0 && ty < 8 )"),
    ),
    Program(
        "bfs",
        Side("cuda/bfs", ("bfs.cu",), "../../data/bfs/graph.txt", (Answer("result.txt"),), (), ("TIMING",), (".", "../util")),
        Side("openmp/bfs", ("bfs.cpp",), "2 ../../data/bfs/graph.txt", (Answer("result.txt"),)),
        "twin",
        {"data/bfs/graph.txt": data.graph},
        0.0,
        ("kernel.cu", "g_cost[id]=g_cost[tid]+1", "g_cost[id]=g_cost[tid]+2"),
    ),
    *(cfd(f"{pre}euler3d{kind}", f"{pre}euler3d_cpu{kind}") for pre in ("", "pre_") for kind in ("", "_double")),
    *(dwt2d(transform, forward) for transform in "59" for forward in (True, False)),
    Program(
        "gaussian",
        Side(
            "cuda/gaussian",
            ("gaussian.cu",),
            "-f ../../data/gaussian/made.txt -q",
            (Answer("x.bin", "f4"),),
            (("gaussian.cu", "    BackSub();\n", "    BackSub();\n" + keep("x.bin", "finalVec", "Size")),),
        ),
        reference.solve,
        "numpy.linalg.solve",
        {"data/gaussian/made.txt": data.system},
        1e-4,
        (
            "gaussian.cu",
            "b_cuda[xidx+1+t] -= m_cuda[Size*(xidx+1+t)+(yidx+t)] * b_cuda[t]",
            "b_cuda[xidx+1+t] -= m_cuda[Size*(xidx+1+t)+(yidx+t)] * b_cuda[t+1]",
        ),
        given=(Answer("../../data/gaussian/made.txt"),),
    ),
    Program(
        "heartwall",
        Side(
            "cuda/heartwall",
            tuple(_HEART.format("cu").split()),
            "../../data/heartwall/made.avi 5",
            (Answer("result.txt"),),
            (_BARRIER,),
            ("OUTPUT",),
            (".", "AVI"),
        ),
        Side(
            "openmp/heartwall",
            tuple(_HEART.format("c").split()),
            "../../data/heartwall/made.avi 5 2",
            (Answer("result.txt"),),
            (),
            ("OUTPUT",),
            (".", "AVI"),
        ),
        "twin",
        {"data/heartwall/made.avi": data.heart},
        0.0,
        ("kernel.cu", "fin_max_coo = par_max_coo[i];", "fin_max_coo = par_max_coo[i] + 1;"),
        "a __syncthreads() where threads add up columns that others have yet to write",
    ),
    Program(
        "hotspot",
        Side("cuda/hotspot", ("hotspot.cu",), "128 2 60 ../../data/hotspot/temp_128 ../../data/hotspot/power_128 output.out", (_COLUMN,)),
        reference.heat,
        "the heat equation in NumPy",
        _HOTSPOT,
        1e-5,
        ("hotspot.cu", "Rx_1=1/Rx;", "Rx_1=1.01f/Rx;"),
        given=(Answer("../../data/hotspot/temp_128"), Answer("../../data/hotspot/power_128")),
    ),
    Program(
        "hotspot3D",
        Side("cuda/hotspot3D", ("3D.cu",), "64 8 100 ../../data/hotspot3D/power_64x8 ../../data/hotspot3D/temp_64x8 output.out", (_COLUMN,)),
        Side("openmp/hotspot3D", ("3D.c",), "64 8 100 ../../data/hotspot3D/power_64x8 ../../data/hotspot3D/temp_64x8 output.out", (_COLUMN,)),
        "twin",
        _HOTSPOT_3D,
        1e-5,
        ("opt1.cu", "int W = (i == 0)        ? c : c - 1;", "int W = c;"),
    ),
    Program(
        "huffman",
        Side(
            "cuda/huffman",
            ("main_test_cu.cu", "vlc_kernel_sm64huff.cu", "scan.cu", "pack_kernels.cu", "stats_logger.cpp", "cpuencode.cpp"),
            "../../data/huffman/made.in",
            (Answer("packed.bin", "u4"),),
            (
                before(
                    "main_test_cu.cu",
                    "    compare_vectors(",
                    keep("packed.bin", "destData", "num_ints", "int") + keep("host.bin", "crefData", "num_ints", "int"),
                ),
            ),
        ),
        reference.host,
        "its own encoder on the host",
        {"data/huffman/made.in": data.bytes_of_letters},
        0.0,
        ("vlc_kernel_sm64huff.cu", "codewordlen+=tmpcwlen", "codewordlen+=tmpcwlen+(k==7)"),
        given=(Answer("host.bin", "u4"),),
    ),
    Program(
        "hybridsort",
        Side(
            "cuda/hybridsort",
            ("bucketsort.cu", "mergesort.cu", "main.cu"),
            "../../data/hybridsort/made.txt",
            (Answer("sorted.bin", "f4"),),
            (before("main.cu", "\t// Timer report", keep("sorted.bin", "gpu_odata", "numElements")),),
            ("VERIFY",),
        ),
        reference.sort,
        "numpy.sort",
        {"data/hybridsort/made.txt": data.floats, "cuda/hybridsort/GL/glew.h": str, "cuda/hybridsort/GL/glut.h": str},  # nothing of OpenGL is used
        0.0,
        ("mergesort_kernel.cu", "sortElem(float4 r) {", "sortElem(float4 r) { if (r.x > 0.5f) return r;"),
        given=(Answer("../../data/hybridsort/made.txt"),),
    ),
    Program(
        "kmeans",
        Side("cuda/kmeans", (*_KMEANS, "kmeans_cuda.cu", "rmse.c"), "-o -i ../../data/kmeans/made.txt", _CENTRES_ANSWERS, (_CENTRES_EDIT,)),
        Side("openmp/kmeans/kmeans_openmp", _KMEANS, "-n 1 -i ../../data/kmeans/made.txt", _CENTRES_ANSWERS, (_CENTRES_EDIT,)),
        "twin",
        {"data/kmeans/made.txt": data.points, "openmp/data/kmeans/made.txt": data.points},
        1e-5,
        ("kmeans_cuda_kernel.cu", "if (dist < min_dist)", "if (dist < 0.9f * min_dist)"),
    ),
    Program(
        "lavaMD",
        Side(
            "cuda/lavaMD",
            ("main.c", "util/num/num.c", "util/timer/timer.c", "util/device/device.cu", "kernel/kernel_gpu_cuda_wrapper.cu"),
            "-boxes1d 3",
            (Answer("result.txt"),),
            (_LAVA,),
            ("OUTPUT",),
        ),
        Side(
            "openmp/lavaMD",
            ("main.c", "util/num/num.c", "util/timer/timer.c", "kernel/kernel_cpu.c"),
            "-cores 2 -boxes1d 3",
            (Answer("result.txt"),),
            (_LAVA,),
            ("OUTPUT",),
        ),
        "twin",
        {},
        1e-5,
        ("kernel/kernel_gpu_cuda.cu", "u2 = a2*r2", "u2 = 1.01f*a2*r2"),
    ),
    Program(
        "leukocyte",
        leukocyte(
            "cuda/leukocyte/CUDA",
            ("avilib.c", "find_ellipse.c", "find_ellipse_kernel.cu", "track_ellipse.c", "track_ellipse_kernel.cu", "misc_math.c", "detect_main.c"),
            "../../data/leukocyte/made.avi 3",
        ),
        leukocyte(
            "openmp/leukocyte/OpenMP",
            ("avilib.c", "find_ellipse.c", "track_ellipse.c", "misc_math.c", "detect_main.c"),
            "3 1 ../../data/leukocyte/made.avi",
        ),
        "twin",
        {"data/leukocyte/made.avi": data.cells_in_blood},
        1e-3,
        ("CUDA/find_ellipse_kernel.cu", "tex1Dfetch(t_grad_x,addr) * c_cos_angle[n]", "tex1Dfetch(t_grad_x,addr) * c_sin_angle[n]"),
    ),
    Program(
        "lud",
        Side(
            "cuda/lud",
            ("cuda/lud.cu", "cuda/lud_kernel.cu", "common/common.c"),
            "-s 256 -v",
            (Answer("lu.bin", "f4"),),
            (before("cuda/lud.cu", "  cudaFree(d_m);", _LUD),),
            ("GPU_TIMER",),
            ("common",),
        ),
        Side(
            "openmp/lud",
            ("omp/lud.c", "omp/lud_omp.c", "common/common.c"),
            "-n 2 -s 256",
            (Answer("lu.bin", "f4"),),
            (before("omp/lud.c", "  free(m);", _LUD),),
            (),
            ("common",),
        ),
        "twin",
        {},
        1e-3,  # both are 2.4e-4 from the factors in double precision
        (
            "cuda/lud_kernel.cu",
            "sum += peri_col[threadIdx.y][i] * peri_row[i][threadIdx.x]",
            "sum += peri_col[threadIdx.y][i] * peri_row[i][threadIdx.y]",
        ),
    ),
    Program(
        "mummergpu",
        Side(
            "cuda/mummergpu/src",
            ("mummergpu_main.cpp", "mummergpu.cu", "mummergpu_gold.cpp", "suffix-tree.cpp", "PoolMalloc.cpp"),
            "-l 14 ../../../data/mummergpu/whole.fa ../../../data/mummergpu/reads.fa",
            _MATCHES,
            _MUMMER,
            flags=_NULL,
        ),
        Side(
            "cuda/mummergpu/src",
            ("mummergpu_main.cpp", "mummergpu.cu", "mummergpu_gold.cpp", "suffix-tree.cpp", "PoolMalloc.cpp"),
            "-C -l 14 ../../../data/mummergpu/whole.fa ../../../data/mummergpu/reads.fa",
            _MATCHES,
            _MUMMER,
            flags=_NULL,
        ),
        "its own search on the host (-C)",
        {"data/mummergpu/whole.fa": lambda: data.genome()[0], "data/mummergpu/reads.fa": lambda: data.genome()[1]},
        0.0,
        ("mummergpu_kernel.cu", "GETQCHAR(qrypos) queries[qrypos]", "GETQCHAR(qrypos) queries[(qrypos) == 20 ? 19 : (qrypos)]"),
    ),
    myocyte(0),
    myocyte(1),
    Program(
        "nn",
        Side("cuda/nn", ("nn_cuda.cu",), "../../data/nn/list -r 200 -lat 30 -lng 90", (Answer(PRINTED, after="Distance=", sort=True),)),
        Side("openmp/nn", ("nn_openmp.c",), "../../data/nn/list 200 30 90", (Answer(PRINTED, after="--> ", sort=True),)),
        "twin",
        _HURRICANES,
        1e-5,
        ("nn_cuda.cu", "(lng-latLong->lng)*(lng-latLong->lng)", "(lng-latLong->lng)*(lat-latLong->lng)"),
    ),
    Program(
        "nw",
        Side(
            "cuda/nw",
            ("needle.cu",),
            "256 10",
            (Answer("result.txt"), Answer("scores.bin", "i4")),
            (before("needle.cu", "//#define TRACEBACK", keep("scores.bin", "output_itemsets", "size", "int")),),
            ("TRACEBACK",),
        ),
        Side(
            "openmp/nw",
            ("needle.cpp",),
            "256 10 2",
            (Answer("result.txt"), Answer("scores.bin", "i4")),
            (before("needle.cpp", "#define TRACEBACK\n", keep("scores.bin", "input_itemsets", "max_rows * max_cols", "int")),),
        ),
        "twin",
        {},
        0.0,
        ("needle_kernel.cu", "temp[t_index_y][t_index_x-1]  - penalty", "temp[t_index_y][t_index_x-1]  - penalty - 1"),
    ),
    particle_filter("naive", 1000, ("if(CDF[x] >= u[i]){", "if(CDF[x] >= 0.9 * u[i]){")),
    particle_filter("float", 500, ("if (CDF[x] >= u[i]) {", "if (CDF[x] >= 0.9 * u[i]) {")),
    Program(
        "pathfinder",
        Side("cuda/pathfinder", ("pathfinder.cu",), "4000 60 8", (Answer(PRINTED, last=4000),), (), ("BENCH_PRINT",)),
        Side("openmp/pathfinder", ("pathfinder.cpp",), "4000 60", (Answer(PRINTED, last=4000),)),
        "twin",
        {},
        0.0,
        ("pathfinder.cu", "shortest = MIN(shortest, right);", ""),
    ),
    Program(
        "srad/v1",
        Side(
            "cuda/srad/srad_v1",
            ("main.cu",),
            "20 0.5 512 512",
            (Answer("image.bin", "f4"),),
            (before("main.cu", '\twrite_graphics(\t"image_out.pgm"', keep("image.bin", "image", "Ne", "fp")),),
        ),
        Side(
            "openmp/srad/srad_v1",
            ("main.c",),
            "20 0.5 512 512 2",
            (Answer("image.bin", "f4"),),
            (before("main.c", '\twrite_graphics(\t"image_out.pgm"', keep("image.bin", "image", "Ne", "fp")),),
        ),
        "twin",
        {"data/srad/image.pgm": data.pgm},
        1e-3,  # the twin adds 262,144 floats one after another
        ("srad_kernel.cu", "0.5*d_G2", "0.51*d_G2"),
    ),
    Program(
        "srad/v2",
        Side(
            "cuda/srad/srad_v2",
            ("srad.cu",),
            "256 256 0 127 0 127 0.5 4",
            (Answer("image.bin", "f4"),),
            (before("srad.cu", "\tfree(I);", keep("image.bin", "J", "size_I")),),
        ),
        Side(
            "openmp/srad/srad_v2",
            ("srad.cpp",),
            "256 256 0 127 0 127 2 0.5 4",
            (Answer("image.bin", "f4"),),
            (before("srad.cpp", "\tfree(I);", keep("image.bin", "J", "size_I")),),
        ),
        "twin",
        {},
        1e-4,
        ("srad_kernel.cu", "num  = (0.5*g2)", "num  = (0.51*g2)"),
    ),
    Program(
        "streamcluster",
        Side(
            "cuda/streamcluster",
            ("streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu", "streamcluster_header.cu"),
            _STREAM,
            (Answer("output.txt"),),
            nvcc=("streamcluster_cuda_cpu.cpp",),
        ),
        Side("openmp/streamcluster", ("streamcluster_omp.cpp",), _STREAM, (Answer("output.txt"),)),
        "twin",
        {},
        1e-4,
        ("streamcluster_cuda.cu", "switch_membership_d[tid] = 1;", "switch_membership_d[tid] = tid % 2;"),
    ),
)

NAMES = tuple(dict.fromkeys(program.name.partition("/")[0] for program in PROGRAMS))
"""Rodinia's CUDA programs."""
