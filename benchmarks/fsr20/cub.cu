// CUB's device-wide calls for the suite, as plain functions: with `room` null each writes the bytes that it needs to `bytes`.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#define CALL(name, in_type, out_type, ...) \
    extern "C" int cub_##name(void* room, size_t* bytes, const in_type* in, out_type* out, int n, cudaStream_t stream) { return (int)(__VA_ARGS__); }

CALL(sort, float, float, cub::DeviceRadixSort::SortKeys(room, *bytes, in, out, n, 0, 32, stream))
CALL(prefix_sum, float, float, cub::DeviceScan::InclusiveSum(room, *bytes, in, out, n, stream))
CALL(reduction, float, float, cub::DeviceReduce::Sum(room, *bytes, in, out, n, stream))
CALL(histogram, int, int, cub::DeviceHistogram::HistogramEven(room, *bytes, in, out, 257, 0, 256, n, stream))
