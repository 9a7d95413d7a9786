#!/bin/sh
# The check before a release: it passes only if it is proven that nobody's advantage exceeds the ceiling.
# Usage: sh check.sh TABLE [CEILING]. Exits with 0 if the release may go out, 1 if not, 2 if the table is unusable.
set -eu
tacit audit "$1" --secret member --output score --require-advantage "${2:-0.1}" \
    --report check.html --json check.json
