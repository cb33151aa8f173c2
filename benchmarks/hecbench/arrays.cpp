// Linked to a HeCBench program, ours or its OpenMP twin, to keep what its host arrays hold when they are freed or when the program ends.
// Ours: arrays that cudaMemcpy brought back (ww_back), or with WW_DEVICE those of the device (ww_made). The twin: every block of the heap whose size fits one of those in WW_SIZES.
// Files: $WW_ARRAYS/NUMBER_SIZE, at most 32 MiB of each and 512 MiB in all.
#include <malloc.h>
#include <pthread.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {
constexpr size_t LEAST = 64, MOST = 32u << 20, ALL = 512u << 20;
constexpr int PLACES = 1 << 16;
struct Range { char* at; size_t bytes; };
Range back[PLACES], live[PLACES];
size_t sizes[4096], written = 0;
int backs = 0, lives = 0, wanted = -1, files = 0;
const char* folder = nullptr;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void configure() {
  if (wanted >= 0) return;
  wanted = 0;
  folder = getenv("WW_ARRAYS");
  if (const char* given = getenv("WW_SIZES"))
    while (*given && wanted < 4096) {
      sizes[wanted++] = strtoull(given, (char**)&given, 10);
      given += *given == ',';
    }
}
void keep(const char* at, size_t bytes) {
  const size_t kept = bytes < MOST ? bytes : MOST;
  if (!folder || written + kept > ALL || files > 4000) return;
  char name[512];
  snprintf(name, sizeof name, "%s/%d_%zu", folder, files++, bytes);
  if (FILE* out = fopen(name, "wb")) {
    fwrite(at, 1, kept, out);
    fclose(out);
    written += kept;
  }
}
bool fits(size_t bytes) {
  for (int i = 0; i < wanted; ++i)
    if (sizes[i] <= bytes && bytes <= sizes[i] + 8192) return true;
  return false;
}
thread_local bool inside = false;
struct Alone {  // what is freed while a file is written is none of the program's
  bool mine = !inside;
  Alone() { if (mine) { inside = true; pthread_mutex_lock(&lock); configure(); } }
  ~Alone() { if (mine) { pthread_mutex_unlock(&lock); inside = false; } }
};
void* made(void* p, size_t n) {
  if (n < LEAST || !p) return p;
  Alone alone;
  if (alone.mine && wanted > 0 && lives < PLACES && fits(malloc_usable_size(p))) live[lives++] = {(char*)p, malloc_usable_size(p)};
  return p;
}
void leaves(char* p) {
  if (!p || (backs == 0 && lives == 0)) return;
  Alone alone;
  if (!alone.mine) return;
  const size_t bytes = malloc_usable_size(p);
  for (int i = 0; i < backs;)
    if (back[i].at >= p && back[i].at < p + bytes) { keep(back[i].at, back[i].bytes); back[i] = back[--backs]; } else ++i;
  for (int i = 0; i < lives; ++i)
    if (live[i].at == p) { keep(p, live[i].bytes); live[i] = live[--lives]; break; }
}
__attribute__((destructor)) void end() {
  Alone alone;
  for (int i = 0; i < backs; ++i) keep(back[i].at, back[i].bytes);
  for (int i = 0; i < lives; ++i) keep(live[i].at, live[i].bytes);
  backs = lives = 0;
}
}  // namespace

extern "C" {
void ww_back(void* to, size_t n) {
  char here;
  if (n < LEAST || (char*)to - &here < (8 << 20) && (char*)to > &here) return;  // the stack is gone at the end
  Alone alone;
  for (int i = 0; i < backs; ++i)
    if (back[i].at == to) { if (n > back[i].bytes) back[i].bytes = n; return; }
    else if (back[i].at < to && (char*)to <= back[i].at + back[i].bytes) {  // an array in pieces
      const size_t end = (char*)to + n - back[i].at;
      if (end > back[i].bytes) back[i].bytes = end;
      return;
    }
  if (backs < PLACES) back[backs++] = {(char*)to, n};
}
void ww_made(void* p, size_t n) {
  if (getenv("WW_DEVICE")) ww_back(p, n);
}
void* malloc(size_t n) { return made(__libc_malloc(n), n); }
void* calloc(size_t a, size_t b) { return made(__libc_calloc(a, b), a * b); }
void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return made(__libc_memalign(a, n), n); }
void* aligned_alloc(size_t a, size_t n) { return made(__libc_memalign(a, n), n); }
int posix_memalign(void** p, size_t a, size_t n) { *p = made(__libc_memalign(a, n), n); return *p ? 0 : 12; }
void free(void* p) { leaves((char*)p); __libc_free(p); }
}
