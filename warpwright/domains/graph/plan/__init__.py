"""Native plans for the CPU: a whole straight-line program as one C++ file that calls torch's C shim, and nothing of Python between.

    prepare.py   calls that the shim has not, written with those that it has or that can join a kernel
    build.py     from the graph to the text: one call after the other, views as strides, memory by liveness
    memory.py    where tensors lie: arguments, results, literals, one arena for what is between
    loops.py     loops over elements: copies, indices, integers and masks; floats go to the fused kernels of `cpp`
    products.py  products and attention: loops of ours where they are small, torch's library where they are large
    convolutions.py  convolutions as sums over their taps, transposed ones by the results that read the same taps
    pools.py     pools by whole rows
    shim.py      any other operator that the shim has, by its schema
    runtime.cpp  tensors round our memory, products, small attention: follows cpp/vector_math.cpp in every file
    convolve.cpp, pool.cpp  those sums and pools, in the files that have some
"""
