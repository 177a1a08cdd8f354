#!/bin/bash
[[ -f /etc/batch ]] && KUBELET_EXTRA_ARGS="--register-with-taints=batch=yes:NoSchedule"
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "--node-labels=team=red"
