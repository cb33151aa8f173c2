extern "C" void forward(void** given, const int* start, const int* cut, const int* table,
    long units, long relations, long edges, int threads) {
const T* const value_2 = (const T*)given[0];
const int* const along_src = (const int*)given[1];
const T* const value_1 = (const T*)given[2];
const T* const value_4 = (const T*)given[3];
T* const out_7 = (T*)given[4];
const int* const lift_dst = (const int*)given[5];
char* const locks = (char*)calloc(relations, 1);
#pragma omp parallel num_threads(threads)
{
T* const arena = (T*)aligned_alloc(64, 8192);
T* const r5 = arena + 0;
T* const r6 = arena + 384;
T* const r7 = arena + 704;
#pragma omp for schedule(dynamic, 1)
for (long unit = 0; unit < units; ++unit) {
const int range = table[3 * unit], part = table[3 * unit + 1], parts = table[3 * unit + 2]; const bool shared = parts > 1;
for (long relation = 0; relation < relations; ++relation) {
const int low = cut[2 * (range * relations + relation)], high = cut[2 * (range * relations + relation) + 1];
if (low >= high) continue;
const T* const m1 = value_1 + relation * 30;
int piece = 0, next = low, at = start[low];
while (next < high) {
const int row = next, e0 = at, once = at != start[next]; int rows = 0, begin[64], end[64]; (void)once;
while (rows < 64 && next < high) {
const int stop = start[next + 1];
if (stop - e0 > 1024) {
if (rows) break;
begin[0] = 0; end[0] = 1024; rows = 1; at = e0 + 1024; break;
}
begin[rows] = at - e0; end[rows++] = stop - e0; at = stop; ++next;
}
if (shared && piece++ % parts != part) continue;
for (int i = 0; i < rows; ++i) {
T s5[6] = {};
for (int j = begin[i]; j < end[i]; ++j) {
for (int l_a = 0; l_a < 6; ++l_a) s5[l_a] += (value_2 + (long)along_src[e0 + j] * 6)[l_a];
}
for (int k = 0; k < 6; ++k) r5[i * 6 + k] = s5[k];
}
product<6, 5>(rows, (r5 + 0 * 6) + 0, 6, m1 + 0, 5, r6 + 0, 5);
for (int i = 0; i < rows; ++i) {
for (int l_a = 0; l_a < 5; ++l_a) (r7 + i * 5)[l_a] = (value_4 + (long)(row + i) * 1)[0] * (r6 + i * 5)[l_a];
}
for (int i = 0; i < rows; ++i) add(out_7 + (long)(lift_dst[row + i]) * 5, r7 + i * 5, 5, shared);
}
}
}
free(arena);
}
free(locks);
}
