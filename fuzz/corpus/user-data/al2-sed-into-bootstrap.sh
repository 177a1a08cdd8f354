#!/bin/bash
sed -i '/^KUBELET_EXTRA_ARGS=/a KUBELET_EXTRA_ARGS+=" --max-pods=20 --node-labels=team=red"' /etc/eks/bootstrap.sh
