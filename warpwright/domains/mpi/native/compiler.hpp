// The kernels' machine code: kernels.cu by NVIDIA's run-time compiler, kept on disk.
#pragma once
#include <dlfcn.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "kernels.cu"

namespace warpwright::mpi::gpu {

struct Compiler {
    int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
    int (*compile)(void*, int, const char* const*);
    int (*size)(void*, std::size_t*);
    int (*code)(void*, char*);
    int (*log_size)(void*, std::size_t*);
    int (*log)(void*, char*);
};

inline void* open_compiler() {
    if (const char* path = std::getenv("WARPWRIGHT_NVRTC")) { // found by Python in NVIDIA's registry packages
        const std::string library = path, beside = library.substr(0, library.rfind('/')) + "/libnvrtc-builtins.so.*";
        glob_t found{};
        if (!glob(beside.c_str(), 0, nullptr, &found) && found.gl_pathc) dlopen(found.gl_pathv[0], RTLD_NOW); // libnvrtc opens it by name alone
        globfree(&found);
        if (void* opened = dlopen(path, RTLD_NOW)) return opened;
    }
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"})
        if (void* opened = dlopen(name, RTLD_NOW)) return opened;
    return nullptr;
}

inline std::string compiled(const std::string& arch) {
    void* library = open_compiler();
    if (!library) {
        std::fprintf(stderr, "warpwright.mpi: expected NVIDIA's run-time compiler libnvrtc, saw none: GPU buffers are copied block by block; "
                             "pip install nvidia-cuda-nvrtc\n");
        return {};
    }
    Compiler nvrtc{};
    bool all = true;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        all = all && function;
    };
    find(nvrtc.create, "nvrtcCreateProgram"), find(nvrtc.compile, "nvrtcCompileProgram"), find(nvrtc.size, "nvrtcGetCUBINSize");
    find(nvrtc.code, "nvrtcGetCUBIN"), find(nvrtc.log_size, "nvrtcGetProgramLogSize"), find(nvrtc.log, "nvrtcGetProgramLog");
    if (!all) return {};
    void* program = nullptr;
    const std::string target = "--gpu-architecture=sm_" + arch;
    const char* options[] = {target.c_str(), "--std=c++17"};
    std::size_t size = 0;
    if (nvrtc.create(&program, kernel_source, "kernels.cu", 0, nullptr, nullptr)) return {};
    if (nvrtc.compile(program, 2, options)) {
        nvrtc.log_size(program, &size);
        std::string log(size, ' ');
        nvrtc.log(program, log.data());
        std::fprintf(stderr, "warpwright.mpi: NVRTC refused kernels.cu: GPU buffers are copied block by block\n%s\n", log.c_str());
        return {};
    }
    if (nvrtc.size(program, &size)) return {};
    std::string code(size, ' ');
    return nvrtc.code(program, code.data()) ? std::string() : code;
}

// A file's bytes; none where it cannot be read.
inline std::string content(const std::string& path) {
    std::string bytes;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (!file) return bytes;
    char some[1 << 14];
    for (std::size_t size; (size = std::fread(some, 1, sizeof some, file)) > 0;) bytes.append(some, size);
    std::fclose(file);
    return bytes;
}

// May this user and root alone have written a file? What another may have is not run: the rule of warpwright/native/kept.py.
inline bool ours(const std::string& folder, const std::string& path) {
    struct stat states[3];
    if (lstat(path.c_str(), states) || stat(path.c_str(), states + 1) || stat(folder.c_str(), states + 2)) return false;
    for (int i = 0; i < 3; ++i) {
        const struct stat& state = states[i];
        const bool open = (state.st_mode & S_IWOTH) || ((state.st_mode & S_IWGRP) && state.st_gid != getgid() && state.st_gid != 0);
        const bool harmless = (i == 0 && S_ISLNK(state.st_mode)) || (i == 2 && (state.st_mode & S_ISVTX)); // others add files, and change none
        if ((state.st_uid != getuid() && state.st_uid != 0) || (open && !harmless)) return false;
    }
    return true;
}

// The kernels' machine code, compiled once for each text and architecture (about two seconds).
inline std::string machine_code(const std::string& arch) {
    const char* cache = std::getenv("WARPWRIGHT_CACHE");
    const char* home = std::getenv("HOME");
    const std::string folder = cache ? cache : std::string(home ? home : "/tmp") + "/.cache/warpwright";
    char name[64];
    std::snprintf(name, sizeof name, "/mpi_%zx_%s.cubin", std::hash<std::string>()(kernel_source), arch.c_str());
    const std::string path = folder + name;
    if (std::string kept = ours(folder, path) ? content(path) : std::string(); !kept.empty()) return kept;
    std::string code = compiled(arch);
    if (code.empty()) return code;
    const std::string fresh = path + "." + std::to_string(getpid()) + "." + std::to_string(reinterpret_cast<std::uintptr_t>(&code));
    if (std::FILE* file = std::fopen(fresh.c_str(), "wb")) {
        const bool written = std::fwrite(code.data(), 1, code.size(), file) == code.size();
        if (std::fclose(file) == 0 && written) std::rename(fresh.c_str(), path.c_str()); // atomic: two builders of the same text are no race
        else std::remove(fresh.c_str());
    }
    return code;
}

} // namespace warpwright::mpi::gpu
