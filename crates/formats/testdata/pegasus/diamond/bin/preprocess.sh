#!/bin/sh
# Only the declared files are here, and the programs.
ls
echo "$# words, the last but one is: $6"
./helper f.a > f.b1
./helper f.a > f.b2
