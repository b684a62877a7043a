#!/bin/sh
# join.sh -t TITLE -i INPUT... -o OUTPUT...: every output gets the title, the greeting and all inputs.
title=$2; shift 3
inputs=
while [ "$1" != -o ]; do inputs="$inputs $1"; shift; done
shift
cat settings.cfg > /dev/null || exit 1
for output in "$@"; do { echo "$title: $GREETING"; cat $inputs; } > "$output"; done
