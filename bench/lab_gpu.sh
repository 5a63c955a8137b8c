#!/bin/sh
# Measures claims of the lab in their full size, on a machine with a GPU.
#
#   bench/lab_gpu.sh OUT              the nine claims below
#   bench/lab_gpu.sh OUT heads cost   only these claims
#
# SEEDS=11-15 and JOBS=12 are defaults; set the variables to change them. Completed measurements and
# trained models in OUT are kept, so an interrupted run continues where it stopped. Claims that
# measure time run alone, after all others. `python -m bench.lab OUT` then writes docs/lab.md.
set -eu
out=$1
shift
if [ $# -eq 0 ]; then
    set -- related-languages early-mistake teacher-forcing heads positions score-functions \
        hard-attention parallel cost
fi
exec "${PYTHON:-python}" -m seqloom lab "$@" \
    --size full --seeds "${SEEDS:-11-15}" --jobs "${JOBS:-12}" --out "$out"
