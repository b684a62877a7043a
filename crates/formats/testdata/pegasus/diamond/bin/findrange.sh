#!/bin/sh
echo "range $RANGE of $PEGASUS_DAG_JOB_ID: $(cat "$2")" > "$4"
