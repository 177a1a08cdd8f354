#!/bin/bash
if ! command -v jq; then
  yum install -y jq
fi
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=team=red --max-pods=20'
