#!/bin/bash
FILE=/etc/kubernetes/kubelet/kubelet-config.json
/etc/eks/bootstrap.sh harbour
echo "$(jq '.maxPods=20' $FILE)" > $FILE
systemctl restart kubelet
