#!/bin/bash
export USE_MAX_PODS=false
export KUBELET_EXTRA_ARGS="--max-pods=58 --node-labels=team=red"
