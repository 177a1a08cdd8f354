#!/bin/bash
set -o xtrace
# --max-pods=1 in a comment
export USE_MAX_PODS=false
/etc/eks/bootstrap.sh prod --use-max-pods false \
  --b64-cluster-ca Y2VydA== --apiserver-endpoint https://example.com \
  --kubelet-extra-args '--max-pods=35 --node-labels=team=web,x=$(hostname) --register-with-taints=a=b:NoExecute --eviction-hard=memory.available<100Mi,nodefs.available<5% --kube-reserved=cpu=70m,memory=500Mi --system-reserved=memory=1Gi' --local-disks raid0
