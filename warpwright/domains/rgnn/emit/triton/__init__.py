"""The text of Triton kernels: `tuning` schedules one, `memory` reads and writes, `products` multiplies, `scouting` asks ahead, `text` has it."""
