#!/usr/bin/env bash
# Renders the chart with each file of values/ to rendered/, which a test reads. Needs helm 3 on the PATH.
set -euo pipefail
# The order of files.
export LC_ALL=C
cd "$(dirname "$0")"

for values in values/*.yaml; do
  helm lint --strict --quiet data-pipelines --kube-version 1.31.0 --values "$values"
  rendered=rendered/$(basename "$values")
  # The test compares it with the chart, so that nobody changes one without the other.
  sum=$(cat data-pipelines/*.* data-pipelines/templates/*.* "$values" | sha256sum | cut -d ' ' -f 1)
  { echo "# By render.sh, from chart and values with the SHA-256 $sum"; helm template pipelines data-pipelines --kube-version 1.31.0 --namespace pipelines --values "$values"; } > "$rendered"
done
