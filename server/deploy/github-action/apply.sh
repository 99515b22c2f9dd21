#!/usr/bin/env bash
# The step of action.yml: settings are in the environment, so that no input is part of a command.
set -uo pipefail

cli="$(cd "$(dirname "$0")/../../.." && pwd)/client/cli/main.ts"
arguments=(apply -f "$APPLY_FILE")
[ "$APPLY_PRUNE" = true ] && arguments+=(--prune)

case "$APPLY_MODE" in
  dry-run | drift | apply) ;;
  *)
    echo "::error::mode must be dry-run, apply or drift, not \"$APPLY_MODE\""
    exit 1
    ;;
esac

# What a schedule finds becomes an event in the account, from which a case follows.
plan=(--dry-run)
[ "$APPLY_MODE" = drift ] && plan+=(--report)

text=$(bun "$cli" "${arguments[@]}" "${plan[@]}" 2>&1)
code=$?
echo "$text"
{
  echo '```'
  echo "$text"
  echo '```'
} >>"$GITHUB_STEP_SUMMARY"

# 0: no changes, 2: changes, another code: an error.
case $code in
  0) echo "changes=false" >>"$GITHUB_OUTPUT" ;;
  2) echo "changes=true" >>"$GITHUB_OUTPUT" ;;
  *)
    echo "::error::apply failed with the code $code"
    exit $code
    ;;
esac

if [ "$APPLY_MODE" = drift ] && [ $code = 2 ]; then
  echo "::error::The account differs from $APPLY_FILE"
  exit 2
fi
if [ "$APPLY_MODE" = apply ] && [ $code = 2 ]; then
  exec bun "$cli" "${arguments[@]}" --yes
fi
