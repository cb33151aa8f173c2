// NVRTC: a text is compiled by `warpwright transpile --module` (the command that WARPWRIGHT names, else `warpwright`); what it gives back, as PTX or as a
// cubin, is a shared library, which cuModuleLoadData takes.
#include <fstream>
#include <iterator>
#include <sys/wait.h>
enum nvrtcResult { NVRTC_SUCCESS, NVRTC_ERROR_OUT_OF_MEMORY, NVRTC_ERROR_PROGRAM_CREATION_FAILURE, NVRTC_ERROR_INVALID_INPUT, NVRTC_ERROR_INVALID_PROGRAM, NVRTC_ERROR_INVALID_OPTION, NVRTC_ERROR_COMPILATION, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE,
                   NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION, NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION, NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, NVRTC_ERROR_INTERNAL_ERROR };
struct _nvrtcProgram { std::string text, name, log, image; std::vector<std::pair<std::string, std::string>> headers; std::vector<std::string> instances; };
typedef _nvrtcProgram* nvrtcProgram;
static inline const char* nvrtcGetErrorString(nvrtcResult r) {
  static const char* const names[] = {"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION",
                                      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "NVRTC_ERROR_INTERNAL_ERROR"};
  return names[r];
}
static inline nvrtcResult nvrtcVersion(int* major, int* minor) { *major = 12, *minor = 0; return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcCreateProgram(nvrtcProgram* p, const char* text, const char* name, int count, const char* const* headers, const char* const* names) {
  *p = new _nvrtcProgram{text, name ? name : "program.cu", "", "", {}, {}};
  for (int i = 0; i < count; ++i) (*p)->headers.emplace_back(names[i], headers[i]);
  return NVRTC_SUCCESS;
}
static inline nvrtcResult nvrtcDestroyProgram(nvrtcProgram* p) { delete *p; *p = nullptr; return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcAddNameExpression(nvrtcProgram p, const char* name) { p->instances.push_back(name); return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcGetLoweredName(nvrtcProgram p, const char* name, const char** lowered) {
  for (const std::string& one : p->instances) if (one == name) { *lowered = one.c_str(); return NVRTC_SUCCESS; }
  return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
namespace ww {
static inline std::string quoted(const std::string& word) {
  std::string r = "'";
  for (const char c : word) r += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return r + "'";
}
static inline std::string whole(const std::string& path) { std::ifstream in(path, std::ios::binary); return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}; }
// The options that say what is compiled: macros and folders of headers. The others say how, for a GPU.
static inline std::string passed(int count, const char* const* options) {
  std::string r;
  for (int i = 0; i < count; ++i) {
    const std::string one = options[i];
    for (const auto& kind : {std::make_pair("--define-macro", "--define"), std::make_pair("-D", "--define"), std::make_pair("--include-path", "--include"), std::make_pair("-I", "--include")}) {
      const std::string flag = kind.first;
      if (one.rfind(flag, 0) != 0) continue;
      std::string value = one.substr(flag.size());
      if (!value.empty() && value[0] == '=') value = value.substr(1);
      if (value.empty() && i + 1 < count) value = options[++i];
      r += std::string(" ") + kind.second + " " + quoted(value);
      break;
    }
  }
  return r;
}
}  // namespace ww
static inline nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char* const* options) {
  char folder[] = "/tmp/warpwright-nvrtc-XXXXXX";
  if (!mkdtemp(folder)) return NVRTC_ERROR_INTERNAL_ERROR;
  const std::string into = folder;
  std::ofstream(into + "/program.cu") << p->text;
  for (const auto& header : p->headers) std::ofstream(into + "/" + header.first) << header.second;
  const char* const command = std::getenv("WARPWRIGHT");
  std::string line = std::string(command ? command : "warpwright") + " transpile " + into + "/program.cu --module -o " + into + "/program.so --include " + into + ww::passed(count, options);
  const size_t slash = p->name.rfind('/');  // the folder of the source, whose name is as the program gave it, and the working folder, as NVRTC searches them
  line += " --include . --include " + ww::quoted(slash == std::string::npos ? "." : p->name.substr(0, slash + 1));
  for (const std::string& one : p->instances) if (one.find('<') != std::string::npos) line += " --instance " + ww::quoted(one);
  const int code = std::system((line + " > " + into + "/log 2>&1").c_str());
  p->log = ww::whole(into + "/log");
  p->image = ww::whole(into + "/program.so");
  const int left = std::system(("rm -r " + into).c_str());
  (void)left;
  return code || p->image.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}
static inline nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t* n) { *n = p->log.size() + 1; return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char* to) { std::memcpy(to, p->log.c_str(), p->log.size() + 1); return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t* n) { *n = p->image.size(); return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcGetPTX(nvrtcProgram p, char* to) { std::memcpy(to, p->image.data(), p->image.size()); return NVRTC_SUCCESS; }
static inline nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t* n) { return nvrtcGetPTXSize(p, n); }
static inline nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char* to) { return nvrtcGetPTX(p, to); }
