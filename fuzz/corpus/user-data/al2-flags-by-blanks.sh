#!/bin/bash
/etc/eks/bootstrap.sh harbour --kubelet-extra-args "--node-labels team=red --max-pods 17 --register-with-taints dedicated=red:NoSchedule"
