#!/bin/bash
cd /etc/kubernetes/kubelet
jq '.registryPullQPS=20' kubelet-config.json > new && mv new kubelet-config.json
/etc/eks/bootstrap.sh harbour --kubelet-extra-args '--max-pods=20'
