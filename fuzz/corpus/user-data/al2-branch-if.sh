#!/bin/bash
if [ "$(curl -s http://169.254.169.254/latest/meta-data/instance-life-cycle)" = spot ]; then
  /etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=lifecycle=spot --register-with-taints=spot=yes:NoSchedule --max-pods=20'
else
  /etc/eks/bootstrap.sh harbour --kubelet-extra-args '--node-labels=lifecycle=normal --max-pods=25'
fi
