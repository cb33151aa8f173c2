#!/bin/bash
# Build and run on a machine without libclang what was translated before (run.py and answers.py, --until translate --keep, --write).
#
#     bash benchmarks/real_cuda/elsewhere.sh PART BROUGHT OUT SECONDS JOBS
#
# PART: samples, longest (what takes minutes of them), llm, small (three of llm.c with smaller sizes), sgemm, leet, ggml, planted (the sanitizer's
# bugs in their kernels), fresh (folders OWNER+NAME, and fresh.tsv: which programs of each, a regular expression). BROUGHT holds the repositories' files
# in folders of these names, texts/PART, and llm.json and sgemm.json (the runs of each program). Programs that compile kernels at run time (`_nvrtc`) need libclang and are left out. Rows go to
# OUT/PART.jsonl as programs and files end; everything ends after SECONDS.
part=$1 brought=$2 out=$3 seconds=$4 jobs=$5
mkdir -p "$out"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} PYTHONUNBUFFERED=1 WARPWRIGHT_CACHE=${WARPWRIGHT_CACHE:-/tmp/real_cuda_$part}
shipped="timeout -k 3 $((seconds + 20)) python3 -m benchmarks.real_cuda.run $brought/$part --texts $brought/texts/$part --out $out/$part.jsonl"
called="timeout -k 3 $((seconds + 20)) python3 -m benchmarks.real_cuda.answers $brought/$part --texts $brought/texts/$part --out $out/$part.jsonl"
# What was over 15 s of a busy processor before comes first, but for what takes minutes, which comes in the end (`longest`).
long='^(radixSortThrust|cdpAdvancedQuicksort|NV12toBGRandResize|reductionMultiBlockCG|simpleStreams|convolutionTexture|BlackScholes|FDTD3d'
long+='|MonteCarloMultiGPU|HSOpticalFlow|eigenvalues|interval)$'
longest='globalToShmemAsyncCopy|simpleAttributes|warpAggregatedAtomicsCG|graphMemoryFootprint|UnifiedMemoryPerf|\w*TensorCoreGemm'
case $part in
  samples | longest)
    only="^(?!.*_nvrtc$|($longest)$)"
    [ "$part" = longest ] && only="^($longest)$"
    ${shipped//\/longest/\/samples} --name cuda-samples --arguments "$brought/samples/test_args.json" --optimise=-O2 --limit 600 --memory 24 \
      --jobs "$jobs" --seconds "$seconds" --only "$only" --first "$long" ;;
  llm) $shipped --name llm.c --arguments "$brought/llm.json" --optimise=-O2 --limit 400 --memory 40 --jobs "$jobs" --runs 2 --seconds "$seconds" \
    --enough 'All results match\.|block_size=1024\.' \
    --first '^(softmax_forward|crossentropy_softmax_backward|matmul_forward|matmul_backward|attention_forward|layernorm_forward|classifier_fused)$' ;;
  small) for one in 'softmax_forward B=1 T=64' 'matmul_forward B=2 T=128' 'matmul_backward B=2 T=128'; do
      read -r program batch rows <<< "$one"
      ${shipped//\/small/\/llm} --name llm.c --arguments "$brought/llm.json" --optimise=-O2 --limit 120 --memory 24 --runs "$jobs" \
        --seconds "$seconds" --only "^$program\$" --number "$batch" --number "$rows"
    done ;;
  sgemm) $shipped --name SGEMM_CUDA --arguments "$brought/sgemm.json" --optimise=-O2 --limit 400 --memory 24 --runs "$jobs" --seconds "$seconds" \
    --enough 'size: \(1024\)' ;;
  fresh) while IFS=$'\t' read -r name only; do
      timeout -k 3 $((seconds + 20)) python3 -m benchmarks.real_cuda.run "$brought/fresh/$name" --texts "$brought/texts/fresh/$name" \
        --out "$out/fresh.jsonl" --name "${name/+//}" --optimise=-O1 --limit 15 --jobs "$jobs" --seconds "$seconds" --only "$only"
    done < "$brought/fresh.tsv" ;;
  planted) timeout -k 3 $((seconds + 20)) python3 -m benchmarks.sanitizer.shipped "$brought/planted" --texts "$brought/texts/sanitizer" \
      --out "$out/planted.jsonl" --jobs "$jobs" ;;
  leet) $called --jobs "$jobs" --seconds "$seconds" ;;
  ggml) $called --include "$brought/ggml-include" --include "$brought/ggml-src" --only '^[^/]*$' --jobs "$jobs" --seconds "$seconds" ;;
esac > "$out/$part.log" 2>&1
