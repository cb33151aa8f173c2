// cuda_pipeline_primitives.h: copies to shared memory, made at once.
static inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) { std::memcpy(to, from, bytes - zeros); std::memset((char*)to + bytes - zeros, 0, zeros); }
static inline void __pipeline_commit() {}
static inline void __pipeline_wait_prior(size_t) {}
