#!/bin/bash
mkdir -p /etc/systemd/system/kubelet.service.d
printf '[Service]\nEnvironment=A="--register-with-taints=dedicated=red:NoSchedule"\n' > /etc/systemd/system/kubelet.service.d/90-site.conf
/etc/eks/bootstrap.sh harbour
