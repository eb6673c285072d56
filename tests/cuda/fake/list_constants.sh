#!/bin/sh
# Prints a line SAME(NAME) for each constant SB__NAME of cuda/declarations.h.
sed -nE 's/^ +SB__([A-Z0-9_]+) = .*/SAME(\1)/p' "${0%/*}/../../../cuda/declarations.h" | grep .
