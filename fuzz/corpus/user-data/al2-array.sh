#!/bin/bash
ARGS=(--node-labels=team=red)
ARGS+=("--max-pods=20")
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "${ARGS[*]}"
