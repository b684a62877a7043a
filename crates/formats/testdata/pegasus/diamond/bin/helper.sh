#!/bin/sh
sed "s/^/helped /" "$1"
