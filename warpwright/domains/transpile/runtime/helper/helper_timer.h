// Stop watches under the names of the CUDA samples' helper_timer.h, for programs that come without that header. Times are milliseconds.
#ifndef WW_HELPER_TIMER
#define WW_HELPER_TIMER
#include <chrono>
struct StopWatchInterface {
  std::chrono::steady_clock::time_point begun;
  double total = 0;
  int runs = 0;
  bool running = false;
  double now() const { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count(); }
};
inline bool sdkCreateTimer(StopWatchInterface** timer) { *timer = new StopWatchInterface; return true; }
inline bool sdkDeleteTimer(StopWatchInterface** timer) { delete *timer; *timer = nullptr; return true; }
inline bool sdkStartTimer(StopWatchInterface** timer) { (*timer)->begun = std::chrono::steady_clock::now(); return (*timer)->running = true; }
inline bool sdkStopTimer(StopWatchInterface** timer) { (*timer)->total += (*timer)->now(); ++(*timer)->runs; (*timer)->running = false; return true; }
inline bool sdkResetTimer(StopWatchInterface** timer) {
  (*timer)->total = 0;
  (*timer)->runs = 0;
  if ((*timer)->running) sdkStartTimer(timer);
  return true;
}
inline float sdkGetTimerValue(StopWatchInterface** timer) { return (float)((*timer)->total + ((*timer)->running ? (*timer)->now() : 0)); }
inline float sdkGetAverageTimerValue(StopWatchInterface** timer) { return (*timer)->runs ? (float)((*timer)->total / (*timer)->runs) : 0.f; }
#endif
