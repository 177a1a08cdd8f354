#!/bin/bash
set -o xtrace
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red,tier=web --register-with-taints=dedicated=red:NoSchedule'
